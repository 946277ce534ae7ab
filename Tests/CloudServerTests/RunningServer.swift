import CatalogModel
import Chunking
import CloudClient
import CloudProtocol
import CloudServer
import Foundation
import Logging
import Synchronization
import TestSupport
import UbiquityModel

/// A server in this process, on loopback, with a data folder of its own.
final class RunningServer: Sendable {
    let url: String
    let data: String
    private let task: Task<Void, any Error>

    /// A quiet logger: what a test provokes is not news.
    static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    /// Starts a server and returns when it can be reached.
    init(
        data: String,
        configure: (inout ServerConfiguration) -> Void = { _ in }
    ) async throws {
        self.data = data
        var configuration = ServerConfiguration(dataDirectory: data, isEmbedded: true, logger: Self.logger)
        configure(&configuration)
        let server = try UbiquityServer(configuration: configuration)
        let (urls, announced) = AsyncStream<String>.makeStream()
        task = Task {
            defer { announced.finish() }
            try await server.run(handlesSignals: false) { announced.yield($0) }
        }
        var iterator = urls.makeAsyncIterator()
        guard let url = await iterator.next() else {
            try await task.value
            throw TestFailure("the server ended at once")
        }
        self.url = url
    }

    func stop() async throws {
        task.cancel()
        try await task.value
    }

    /// A code for the account `me`.
    func code(readOnly: Bool = false, containers: [ContainerID] = []) async throws -> String {
        let administration = try ServerAdministration(dataDirectory: data)
        return try await administration.makeInvitation(account: "me", containers: containers, isReadOnly: readOnly).code
    }

    func join(_ name: String, code: String? = nil) async throws -> CloudClient {
        let code = if let code { code } else { try await self.code() }
        let (credentials, _) = try await CloudClient.join(url: url, code: code, deviceName: name, logger: Self.logger)
        return try CloudClient(credentials: credentials, logger: Self.logger)
    }
}

/// A server with the container `Documents`, and a device that may do everything.
/// - Parameter isPlain: Without TLS, for requests that are written by hand.
func withServer(
    isPlain: Bool = false,
    configure: (inout ServerConfiguration) -> Void = { _ in },
    _ body: (RunningServer, CloudClient, ContainerInfo) async throws -> Void
) async throws {
    let folder = try ServerFolder()
    if isPlain { _ = try await ServerAdministration(dataDirectory: folder.path).addAccount(name: "me", quota: nil) }
    let server = try await RunningServer(data: folder.path) {
        $0.isEmbedded = !isPlain
        configure(&$0)
    }
    let client = try await server.join("laptop")
    let container = try await client.createContainer(.documents, layout: .drive, isCaseInsensitive: false)
    let outcome: Result<Void, any Error>
    do { outcome = .success(try await body(server, client, container)) } catch { outcome = .failure(error) }
    await client.shutdown()
    try await server.stop()
    try outcome.get()
}

/// A folder that goes with its owner.
final class ServerFolder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/ubiquity-server-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// A content as a device prepares it.
struct PreparedFile {
    var revision = RevisionID.random()
    var frames: [ChunkFrame] = []
    var manifest = Manifest()
    var content: FileContent

    init(_ bytes: [UInt8], _ container: ContainerInfo) throws {
        guard let key = ContainerKey(bytes: container.key) else { throw TestFailure("the container's key is none") }
        var chunker = Chunker(key: key)
        var frames = [ChunkFrame]()
        bytes.withUnsafeBytes { bytes in
            chunker.append(bytes) { id, plain in frames.append(ChunkFrame.encode(plain, as: id)) }
        }
        let (manifest, content) = chunker.finish { id, plain in frames.append(ChunkFrame.encode(plain, as: id)) }
        self.frames = frames
        self.manifest = manifest
        self.content = FileContent(revision: revision, content: content, size: Int64(bytes.count))
    }

    /// The frames, with one bit of the second changed.
    var forged: [ChunkFrame] {
        var frames = frames
        frames[1].data[10] ^= 1
        return frames
    }

    func edit(_ item: ItemID, base: RevisionID) -> ItemOperation {
        ItemOperation(
            id: .random(),
            item: item,
            action: .edit(
                base: base,
                content: .file(content),
                attributes: ItemAttributes(modified: Timestamp(nanoseconds: 6), mode: 0o644),
                manifest: manifest,
                edited: Timestamp(nanoseconds: 6)
            )
        )
    }

    func create(_ name: String, item: ItemID = .random()) throws -> ItemOperation {
        ItemOperation(
            id: .random(),
            item: item,
            action: .create(
                place: Place(parent: .root, name: try Name(name)),
                content: .file(content),
                attributes: ItemAttributes(modified: Timestamp(nanoseconds: 5), mode: 0o644),
                manifest: manifest,
                edited: Timestamp(nanoseconds: 5)
            )
        )
    }
}

func folder(_ name: String) throws -> ItemOperation {
    ItemOperation(
        id: .random(),
        item: .random(),
        action: .create(
            place: Place(parent: .root, name: try Name(name)),
            content: .folder,
            attributes: ItemAttributes(modified: Timestamp(nanoseconds: 5), mode: 0o755),
            manifest: Manifest(),
            edited: Timestamp(nanoseconds: 5)
        )
    )
}

let noClock = Timestamp(nanoseconds: 0)

/// The server's code for its refusal; `nil` if there was none.
func refusal(_ body: () async throws -> Void) async -> String? {
    do {
        try await body()
        return nil
    } catch let error as CloudError {
        switch error {
        case .rejected(let code, _): return code
        case .revoked: return "revoked"
        case .unauthorized: return "unauthorized"
        case .notFound: return "not-found"
        case .serverFull: return "no-space"
        case .quotaExceeded: return "quota"
        case .tooNew: return "too-new"
        case .wrongServer: return "wrong-server"
        case .offline, .stalled, .malformed, .cancelled: return "\(error)"
        }
    } catch {
        return "\(error)"
    }
}

/// Fails instead of waiting forever.
func within<Value: Sendable>(
    _ limit: Duration,
    _ what: String,
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: limit)
            throw TestFailure("not within \(limit): \(what)")
        }
        defer { group.cancelAll() }
        guard let value = try await group.next() else { throw TestFailure(what) }
        return value
    }
}

/// What was fetched, in order.
final class Received: Sendable {
    private let content = Mutex<[ChunkFrame]>([])
    var frames: [ChunkFrame] { content.withLock { $0 } }
    func add(_ frame: ChunkFrame) { content.withLock { $0.append(frame) } }
}
