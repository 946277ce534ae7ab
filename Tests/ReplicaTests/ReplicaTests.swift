import Glibc
import Replica
import SystemPackage
import Testing
import UbiquityModel

@Suite struct ReplicaTests {
    @Test func `makes what is missing, and finds all again`() throws {
        let scratch = try ScratchFolder()
        let path = scratch.appending("some/where/Documents")
        let item = ItemID.random()
        do {
            let replica = try Replica(directory: path)
            try replica.deletions.append(.item(item))
            try replica.database.setNonce([1, 2, 3])
            _ = try replica.staging.makeFile()
            try replica.database.close()
        }
        let replica = try Replica(directory: path)
        #expect(replica.deletions.entries() == [.item(item)])
        #expect(try replica.database.nonce() == [1, 2, 3])
        #expect(try FileNames.list(replica.stagingPath).isEmpty)
        #expect(try InodeKey(in: AT_FDCWD, name: replica.treePath) == replica.tree.rootKey)
    }

    @Test func `is open once at a time`() throws {
        let scratch = try ScratchFolder()
        let first = try Replica(directory: scratch.path)
        #expect(throws: ReplicaError.inUse(path: scratch.path)) { _ = try Replica(directory: scratch.path) }
        #expect(first.directory == scratch.path)
    }

    @Test func `says on what it failed`() throws {
        let scratch = try ScratchFolder()
        try scratch.write("file")
        let path = scratch.appending("file/replica")
        #expect(throws: ReplicaError.system(operation: "create", path: path, .notDirectory)) {
            _ = try Replica(directory: path)
        }
    }
}
