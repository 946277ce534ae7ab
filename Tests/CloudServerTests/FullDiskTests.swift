import Chunking
import CloudClient
import CloudServer
import Glibc
import TestSupport
import Testing
import UbiquityModel

@Suite(.enabled(if: SmallDisk.isAvailable, "mounting a small disk needs root"))
struct FullDiskTests {
    @Test func `a full disk refuses uploads and commits, and the server goes on when there is room`() async throws {
        let disk = try SmallDisk(bytes: 4 * 1024 * 1024)
        let server = try await RunningServer(data: disk.path + "/data")
        let client = try await server.join("laptop")
        let container = try await client.createContainer(.documents, layout: .drive, isCaseInsensitive: false)
        let small = try PreparedFile(randomBytes(10_000), container)
        let operations = [try small.create("small")]
        _ = try await client.commit(
            .documents,
            operations: operations,
            frames: small.frames,
            clock: noClock
        )
        let big = try PreparedFile(randomBytes(2_500_000, seed: 2), container)
        let filler = disk.path + "/filler"
        try Files.write([UInt8](repeating: 1, count: 2_000_000), to: filler)
        #expect(await refusal { try await client.upload(.documents, frames: big.frames) } == "no-space")
        let create = try big.create("big")
        let code = await refusal {
            _ = try await client.commit(.documents, operations: [create], frames: big.frames, clock: noClock)
        }
        #expect(code == "no-space")
        // What was there before is still served.
        let received = Received()
        try await client.fetch(.documents, chunks: small.frames.map(\.chunk), examine: false) { received.add($0) }
        #expect(received.frames == small.frames)
        try Files.remove(filler)
        _ = try await client.commit(.documents, operations: [create], frames: big.frames, clock: noClock)
        let names = try await client.changes(.documents, since: nil, limit: 10).items.map(\.place.name.description)
        #expect(names == ["small", "big"])
        await client.shutdown()
        try await server.stop()
    }
}

/// A disk in memory that is soon full. Gone with its owner.
final class SmallDisk: Sendable {
    private let folder: ServerFolder
    var path: String { folder.path }

    static var isAvailable: Bool { (try? SmallDisk(bytes: 65_536)) != nil }

    init(bytes: Int) throws {
        folder = try ServerFolder()
        guard mount("tmpfs", folder.path, "tmpfs", 0, "size=\(bytes)") == 0 else {
            throw SystemError("mounting", folder.path, errno)
        }
    }

    deinit { umount2(folder.path, Int32(MNT_DETACH)) }
}
