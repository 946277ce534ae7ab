import Chunking
import NIOCore
import Synchronization
import Testing
import UbiquityModel

@testable import CloudClient

@Suite struct RateLimitTests {
    struct Traffic: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var rate: Int64?
        /// Milliseconds, and the bytes that travel then.
        var sent: [(at: Int, bytes: Int)]
        /// Milliseconds: when it is asked, and how long the next bytes wait.
        var asked: Int
        var wait: Int
    }

    static let traffic = [
        Traffic(testDescription: "no limit", rate: nil, sent: [(0, 1 << 40)], asked: 0, wait: 0),
        Traffic(testDescription: "nothing yet", rate: 1000, sent: [], asked: 7, wait: 0),
        Traffic(testDescription: "a second's bytes", rate: 1000, sent: [(0, 1000)], asked: 0, wait: 950),
        Traffic(testDescription: "they add up", rate: 1000, sent: [(0, 600), (10, 600)], asked: 100, wait: 1050),
        Traffic(testDescription: "half of it over", rate: 1000, sent: [(0, 1000)], asked: 500, wait: 450),
        Traffic(testDescription: "less than the burst is left", rate: 1000, sent: [(0, 1000)], asked: 960, wait: 0),
        Traffic(
            testDescription: "a pause saves nothing up",
            rate: 1000,
            sent: [(60_000, 500)],
            asked: 60_000,
            wait: 450
        ),
        Traffic(testDescription: "large", rate: 1 << 20, sent: [(0, 1 << 30)], asked: 0, wait: 1_023_950),
    ]

    @Test(arguments: traffic)
    func `what has travelled takes its time before the next`(traffic: Traffic) {
        var limit = RateLimit(rate: traffic.rate)
        for (moment, bytes) in traffic.sent { limit.note(bytes, at: .milliseconds(moment)) }
        #expect(limit.wait(at: .milliseconds(traffic.asked)) == .milliseconds(traffic.wait))
    }

    @Test func `each waits for what came before it, and whoever comes again is the last`() {
        var limit = RateLimit(rate: 1000)
        let waits = [
            limit.reserve(1000, at: .zero), limit.reserve(500, at: .zero), limit.reserve(1000, at: .milliseconds(10)),
            // The first has gone out, and goes on.
            limit.reserve(1000, at: .milliseconds(20)),
        ]
        #expect(waits == [.zero, .milliseconds(950), .milliseconds(1440), .milliseconds(2430)])
    }

    @Test func `what travels without waiting takes its time from those that come after it`() {
        var limit = RateLimit(rate: 1000)
        limit.note(1000, at: .zero)
        let first = limit.reserve(1000, at: .zero)
        limit.note(500, at: .zero)
        let second = limit.reserve(1000, at: .zero)
        #expect([first, second] == [.milliseconds(950), .milliseconds(2450)])
    }

    @Test func `without a limit nobody has to take a place`() {
        var limit = RateLimit(rate: nil)
        let waits = [limit.reserve(1 << 30, at: .zero), limit.reserve(1, at: .zero)]
        #expect(waits == [.zero, .zero])
    }

    @Test func `without its limit nothing waits`() {
        var limit = RateLimit(rate: 1000)
        limit.note(1_000_000, at: .zero)
        limit.set(nil)
        #expect(limit.wait(at: .zero) == .zero)
        limit.set(1000)
        #expect(limit.wait(at: .zero) == .zero)
    }
}

@Suite struct BandwidthTests {
    private static let rate: Int64 = 1 << 20
    /// What is on its way in one piece is not counted before it has gone: so much of the time may be missing.
    private static let least = Duration.milliseconds(250)
    /// Of four that take turns of a quarter of a second's bytes, each waits for a second; were they not to, the last would wait for twelve.
    /// (What computes beside it can keep a turn waiting for seconds: tests share the processors.)
    private static let patience = Transport.TimeLimits(connect: .seconds(60), idle: .seconds(8))

    @Test func `what comes here is no faster than its limit`() async throws {
        let frames = try (1...8).map { try frame($0, bytes: 128 * 1024) }
        let answer = StubServer.Answer.pieces(frames.map { encoded($0) }, ends: true)
        try await withClient(answer: { _ in answer }) { client, _ in
            client.bandwidth.set(BandwidthLimits(down: Self.rate))
            let received = Mutex(0)
            let began = ContinuousClock.now
            try await client.fetch(.documents, chunks: frames.map(\.chunk), examine: false) { frame in
                received.withLock { $0 += frame.data.count }
            }
            #expect(received.withLock { $0 } == 1 << 20)
            #expect(ContinuousClock.now - began > Self.least)
        }
    }

    @Test func `many that share a slow link all go on, none for so long without a byte that it looks dead`()
        async throws
    {
        let frame = try frame(1, bytes: 256 * 1024)
        let answer = StubServer.Answer.pieces([encoded(frame)], ends: true)
        let limits = Self.patience
        try await withClient(limits: limits, answer: { _ in answer }) { client, _ in
            client.bandwidth.set(BandwidthLimits(down: 64 * 1024))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        try await client.fetch(.documents, chunks: [frame.chunk], examine: false) { _ in }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func `many that send over a slow link take turns, and none is given up`() async throws {
        let frame = try frame(1, bytes: 256 * 1024)
        let limits = Self.patience
        try await withClient(limits: limits, answer: { _ in .message([]) }) { client, _ in
            client.bandwidth.set(BandwidthLimits(up: 64 * 1024))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask { try await client.upload(.documents, frames: [frame]) }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func `what goes to the cloud is no faster than its limit, and all of it arrives`() async throws {
        let frames = try (1...8).map { try frame($0, bytes: 128 * 1024) }
        let arrived = Mutex(0)
        try await withClient(answer: { request in
            arrived.withLock { $0 = request.body.count }
            return .message([])
        }) { client, _ in
            client.bandwidth.set(BandwidthLimits(up: Self.rate))
            let began = ContinuousClock.now
            try await client.upload(.documents, frames: frames)
            #expect(ContinuousClock.now - began > Self.least)
        }
        #expect(arrived.withLock { $0 } == frames.reduce(0) { $0 + encoded($1).count })
    }
}
