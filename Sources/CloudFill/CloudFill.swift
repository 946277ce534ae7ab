import ArgumentParser
import Chunking
import CloudClient
import Glibc
import Logging
import UbiquityModel

/// `cloud-fill`: joins an account as a device and puts many items into one of its containers, straight through the protocol.
/// For measurements and tests with more items than anybody wants to copy through a mount.
@main
struct CloudFill: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cloud-fill",
        abstract: "Puts folders full of small files into a container."
    )

    @Argument(help: "The server's address, as `ubiquity invite` prints it.")
    var url: String
    @Argument(help: "The invitation's code.")
    var code: String
    @Option(help: "The container.")
    var container = "Documents"
    @Option(help: "How many folders, in the container's root.")
    var folders = 1000
    @Option(help: "How many files in each.")
    var files = 1000
    @Option(help: "The name of the folder that they shall lie in, in the root; it must be new.")
    var below: String?

    func validate() throws {
        guard folders >= 0, files >= 0, folders <= 1_000_000, files <= 1_000_000 else {
            throw ValidationError("numbers from 0 to 1,000,000, please")
        }
    }

    func run() async throws {
        let logger = Logger(label: "cloud-fill")
        let (credentials, containers) = try await CloudClient.join(
            url: url,
            code: code,
            deviceName: "cloud-fill",
            logger: logger
        )
        guard let info = containers.first(where: { $0.id.text == container }), let key = ContainerKey(bytes: info.key)
        else { throw ValidationError("there is no container \(container) for this code") }
        let client = try CloudClient(credentials: credentials, logger: logger)
        var filler = Filler(client: client, container: info.id, key: key)
        do {
            _ = try await client.session(nonce: credentials.nonce, clock: Filler.now)
            try await filler.fill(folders: folders, files: files, below: below)
            try await client.signOut()
        } catch {
            await client.shutdown()
            throw error
        }
        await client.shutdown()
    }
}

/// Collects operations into commits of the size that the protocol allows.
private struct Filler {
    struct Refused: Error, CustomStringConvertible {
        let description: String
    }

    let client: CloudClient
    let container: ContainerID
    let key: ContainerKey
    var operations: [ItemOperation] = []
    var frames: [ChunkFrame] = []

    static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
    }

    mutating func fill(folders: Int, files: Int, below: String?) async throws {
        // All have the same content: what counts here are items, not bytes.
        let bytes = Array("one small file of many\n".utf8)
        let frame = bytes.withUnsafeBytes { ChunkFrame.encode($0, as: chunkID(of: $0, key: key)) }
        let manifest = Manifest(entries: [Manifest.Entry(chunk: frame.chunk, length: UInt32(bytes.count))])
        let content = contentID(of: manifest, key: key)
        frames = [frame]
        var top = ItemID.root
        if let below { top = try await add(.folder, below, in: .root, Manifest(entries: [])) }
        for folder in 0..<folders {
            let parent = try await add(.folder, "folder-\(padded(folder))", in: top, Manifest(entries: []))
            for file in 0..<files {
                let revision = RevisionID.made(at: Self.now)
                let what = FileContent(revision: revision, content: content, size: Int64(bytes.count))
                _ = try await add(.file(what), "file-\(padded(file)).txt", in: parent, manifest)
            }
        }
        try await send()
    }

    private func padded(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 6 - digits.count)) + digits
    }

    private mutating func add(
        _ content: ItemContent,
        _ name: String,
        in parent: ItemID,
        _ manifest: Manifest
    ) async throws -> ItemID {
        let id = ItemID.made(at: Self.now)
        let attributes = ItemAttributes(modified: Self.now, mode: content.kind == .folder ? 0o755 : 0o644)
        let place = Place(parent: parent, name: try Name(name))
        operations.append(
            ItemOperation(
                id: .made(at: Self.now),
                item: id,
                action: .create(
                    place: place,
                    content: content,
                    attributes: attributes,
                    manifest: manifest,
                    edited: attributes.modified
                )
            )
        )
        if operations.count == 4096 { try await send() }
        return id
    }

    private mutating func send() async throws {
        guard !operations.isEmpty else { return }
        let answer = try await client.commit(container, operations: operations, frames: frames, clock: Self.now)
        for outcome in answer.outcomes {
            guard case .committed = outcome else { throw Refused(description: "the server says \(outcome)") }
        }
        operations.removeAll(keepingCapacity: true)
        frames = []
    }
}
