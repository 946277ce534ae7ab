import EngineCore
import Testing
import UbiquityModel

/// When the files beside one that is read are brought, and how many.
struct ReadingWalkTests {
    private let folder = Self.item(1)
    private let other = Self.item(2)
    private let third = Self.item(3)

    private static func item(_ number: UInt64) -> ItemID { ItemID(high: 0, low: number) }

    /// Misses one after the other, a millisecond apart; what is brought at each.
    private func windows(_ folders: [ItemID], pauses: [Int: Duration] = [:]) -> [Int] {
        var walk = ReadingWalk()
        var now = Instant.start
        return folders.enumerated().map { index, folder in
            now = now + (pauses[index] ?? .milliseconds(1))
            return walk.missed(in: folder, at: now)
        }
    }

    @Test
    func `one file brings no other`() {
        #expect(windows([folder]) == [0])
        #expect(windows([folder, other, third, folder, other]) == [0, 0, 0, 0, 0])
    }

    @Test
    func `each further miss in a folder brings twice as many, up to a limit`() {
        #expect(windows(Array(repeating: folder, count: 8)) == [0, 32, 64, 128, 256, 512, 512, 512])
    }

    @Test
    func `a pause ends it`() {
        #expect(windows([folder, folder, folder, folder], pauses: [2: .seconds(3)]) == [0, 32, 0, 32])
    }

    @Test
    func `the next folder begins with half, and goes on by its own misses`() {
        #expect(windows([folder, folder, folder, other, other, other]) == [0, 32, 64, 32, 64, 128])
    }

    @Test
    func `single files in many folders soon bring none`() {
        let folders = [folder, folder, folder, folder, other, third, folder, other]
        #expect(windows(folders) == [0, 32, 64, 128, 64, 32, 0, 0])
    }

    @Test
    func `who reads what was brought gets as many in the next folder, and more before they are missed`() {
        var walk = ReadingWalk()
        var now = Instant.start
        func later() -> Instant {
            now = now + .milliseconds(1)
            return now
        }
        #expect(walk.readMost(of: folder, at: later()) == 0)
        #expect([0, 32].map { _ in walk.missed(in: folder, at: later()) } == [0, 32])
        #expect(walk.readMost(of: folder, at: later()) == 64)
        #expect(walk.missed(in: other, at: later(), isRead: true) == 64)
        // What was read of another folder says nothing of this one.
        #expect(walk.readMost(of: folder, at: later()) == 0)
        #expect(walk.missed(in: third, at: later(), isRead: false) == 32)
        now = now + .seconds(3)
        #expect(walk.readMost(of: third, at: now) == 0)
    }
}
