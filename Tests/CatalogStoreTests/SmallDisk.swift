import CatalogModel
import CatalogStore
import Glibc
import Reconciliation
import TestSupport
import Testing
import UbiquityModel

/// A disk in memory that is soon full. Gone with its owner.
final class SmallDisk: Sendable {
    private let folder: TemporaryFolder
    var path: String { folder.path }

    static var isAvailable: Bool { (try? SmallDisk(bytes: 65_536)) != nil }

    init(bytes: Int) throws {
        folder = try TemporaryFolder()
        guard mount("tmpfs", folder.path, "tmpfs", 0, "size=\(bytes)") == 0 else {
            throw SystemError("mounting", folder.path, errno)
        }
    }

    deinit { umount2(folder.path, Int32(MNT_DETACH)) }
}

@Suite(.enabled(if: SmallDisk.isAvailable, "mounting a small disk needs root"))
struct FullCatalogTests {
    @Test func `a full disk refuses commits, and the catalogue goes on when there is room`() async throws {
        // With the room that is kept for opening it.
        let disk = try SmallDisk(bytes: 3 * 1024 * 1024)
        let catalog = try SQLiteCatalog(path: disk.path + "/catalog.sqlite")
        try await catalog.addAccount("anna", quota: nil, now: time(1))
        _ = try await catalog.join("anna", token: [1], name: "laptop")
        let scope = Scope(token: TokenHash(token: [1]), container: .documents)
        let info = ContainerInfo(
            id: .documents,
            key: [UInt8](repeating: 7, count: 32),
            layout: .drive,
            isCaseInsensitive: false,
            isReadOnly: false
        )
        _ = try await catalog.createContainer(info, by: scope.token, now: time(1))
        try Files.write([UInt8](repeating: 1, count: 1_000_000), to: disk.path + "/filler")
        func commit(_ name: String) async throws(CatalogError) -> Bool {
            guard let operation = try? folder(name) else { return false }
            let request = CommitRequest(entries: [.operation(operation)], deviceClock: time(1), now: time(1))
            return try await catalog.commit(request, scope).outcomes.first?.item != nil
        }
        var committed = 0
        var failure: CatalogError?
        while failure == nil, committed < 100_000 {
            do throws(CatalogError) {
                #expect(try await commit("f\(committed)"))
                committed += 1
            } catch { failure = error }
        }
        #expect(failure == .noSpace)
        #expect(try await catalog.changes(scope, since: nil, limit: 1).head.counter == UInt64(committed))
        try Files.remove(disk.path + "/filler")
        #expect(try await commit("after"))
        #expect(try await catalog.changes(scope, since: nil, limit: 1).head.counter == UInt64(committed + 1))
        try catalog.close()
    }
}
