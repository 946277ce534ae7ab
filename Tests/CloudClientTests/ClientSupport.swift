import Chunking
import CloudProtocol
import Logging
import NIOCore
import SwiftProtobuf
import UbiquityModel

@testable import CloudClient

let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

extension Credentials {
    static func test(port: Int, scheme: String = "http", certificate: String? = nil) -> Credentials {
        Credentials(
            url: "\(scheme)://127.0.0.1:\(port)",
            certificate: certificate,
            fingerprint: nil,
            account: "me",
            device: DeviceID(high: 1, low: 1),
            deviceName: "laptop",
            token: [1, 2, 3],
            nonce: [4]
        )
    }
}

/// Runs a test against a server that answers in a given way, and ends both whatever happens.
/// - Parameter limits: long ones, unless a test is about them: a machine that runs many tests may leave one alone for half a minute.
func withClient<Result>(
    limits: Transport.TimeLimits = .init(connect: .seconds(60), idle: .minutes(5)),
    answer: @escaping @Sendable (StubServer.Request) -> StubServer.Answer,
    _ body: (CloudClient, StubServer) async throws -> Result
) async throws -> Result {
    let server = try await StubServer.start(answer: answer)
    let client = try CloudClient(credentials: .test(port: server.port), limits: limits, logger: quiet)
    do {
        let result = try await body(client, server)
        await client.shutdown()
        try? await server.stop()
        return result
    } catch {
        await client.shutdown()
        try? await server.stop()
        throw error
    }
}

func failure(_ code: FailureCode, _ message: String = "no") -> StubServer.Answer {
    StubServer.Answer(WireFailure(code, message), status: code.status)
}

/// Encoded; the messages of these tests can all be.
func bytes(_ message: some Message) -> [UInt8] { (try? message.body) ?? [] }

extension StubServer.Answer {
    init(_ message: some Message, status: Int = 200) { self = .message(bytes(message), status: status) }
}

/// The error of something that must fail.
func cloudError(of body: () async throws -> Void) async -> CloudError? {
    do {
        try await body()
        return nil
    } catch { return error as? CloudError }
}

/// A frame whose name is made of one byte: the client does not look at contents.
func frame(_ byte: UInt8, bytes: Int = 100) throws -> ChunkFrame {
    guard let chunk = ChunkID(bytes: [UInt8](repeating: byte, count: 32)) else { throw CloudError.malformed("test") }
    return ChunkFrame(
        chunk: chunk,
        length: UInt32(bytes),
        isCompressed: false,
        data: [UInt8](repeating: byte, count: bytes)[...]
    )
}

func encoded(_ frame: ChunkFrame) -> [UInt8] { LengthPrefix.encode(bytes(WireChunkFrame(frame))) }

extension WireChunkFrame {
    init(_ frame: ChunkFrame) {
        self.init(chunk: frame.chunk, length: frame.length, isCompressed: frame.isCompressed, data: frame.data)
    }
}

extension CloudError {
    /// Apart from the words.
    var kind: String { String("\(Mirror(reflecting: self).children.first?.label ?? String(describing: self))") }
}
