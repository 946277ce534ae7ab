import Glibc
import TestSupport
import Testing
import UbiquityControl
import UbiquityModel

@testable import DeviceService

@Suite struct MountingTests {
    @Test func `the table of mounts is read with its escapes`() {
        let text = """
            22 1 8:1 / / rw,relatime shared:1 master:2 - ext4 /dev/sda1 rw
            40 22 0:35 / /home/a/My\\040Files rw,nosuid - fuse.ubiquity Docu\\134ments rw,user_id=0
            41 22 0:36 / /x rw
            short

            """
        let mounts = MountInfo.parse(Array(text.utf8))
        #expect(mounts.map(\.type) == ["ext4", "fuse.ubiquity"])
        #expect(mounts.map { String(decoding: $0.mountPoint, as: UTF8.self) } == ["/", "/home/a/My Files"])
        #expect(mounts.last?.source == "Docu\\ments")
        #expect(mounts.last?.isUbiquity == true)
    }

    @Test func `a mount point is made, and its condition told`() async throws {
        try await withScratchFolder { folder in
            let (point, made) = try MountPoint.prepare(Array((folder + "/deep/point/").utf8))
            #expect(point == ControlPath(folder + "/deep/point"))
            #expect(made == [folder + "/deep", folder + "/deep/point"])
            #expect(try MountPoint.condition(of: point) == .empty)
            try Files.write("x", to: folder + "/deep/point/file")
            #expect(try MountPoint.condition(of: point) == .occupied)
            let file = #expect(throws: ControlError.self) {
                try MountPoint.condition(of: ControlPath(folder + "/deep/point/file"))
            }
            #expect(file?.why == "it is not a folder")
        }
    }

    @Test func `what was made for a mount point goes again, as far as it is empty`() async throws {
        try await withScratchFolder { folder in
            let made = try MountPoint.prepare(Array((folder + "/deep/point").utf8)).made
            let others = try MountPoint.prepare(Array((folder + "/deep/other").utf8)).made
            #expect(try MountPoint.prepare(Array((folder + "/deep").utf8)).made == [])
            HomeDirectories.removeEmptyFolders(others)
            #expect(try Files.names(in: folder + "/deep") == ["point"])
            try Files.write("x", to: folder + "/deep/file")
            HomeDirectories.removeEmptyFolders(made)
            #expect(try Files.names(in: folder + "/deep") == ["file"])
            // Half made is not left either.
            let long = String(repeating: "x", count: 300)
            #expect(throws: ControlError.self) {
                try MountPoint.prepare(Array((folder + "/half/\(long)").utf8))
            }
            #expect(try Files.names(in: folder) == ["deep"])
        }
    }

    @Test func `containers of one name in two accounts have a folder each`() async throws {
        try await withScratchFolder { folder in
            let home = try HomeDirectories(home: folder)
            func info(_ byte: UInt8, isReadOnly: Bool = false) -> ContainerInfo {
                ContainerInfo(
                    id: .documents,
                    key: [UInt8](repeating: byte, count: 32),
                    layout: .drive,
                    isCaseInsensitive: false,
                    isReadOnly: isReadOnly
                )
            }
            let first = try ContainerFolder.ensure(info(1), home)
            let second = try ContainerFolder.ensure(info(2), home)
            #expect(first.path == home.containers + "/Documents")
            #expect(second.path == home.containers + "/Documents~2")
            // Whoever signs in again finds his own, with what has changed about it.
            let again = try ContainerFolder.ensure(info(1, isReadOnly: true), home)
            #expect(again.path == first.path)
            #expect(try ContainerFolder.all(home).map(\.info) == [info(1, isReadOnly: true), info(2)])
        }
    }

    @Test func `the table keeps one mount a container`() throws {
        var table = MountTable()
        table["A"] = MountTable.Entry(container: "A", mountPoint: ControlPath("/a"), options: [], isImporting: false)
        table["A"] = MountTable.Entry(container: "A", mountPoint: ControlPath("/b"), options: [], isImporting: true)
        #expect(table.entries.count == 1)
        #expect(table["A"]?.mountPoint == ControlPath("/b"))
        table["A"] = nil
        #expect(table.entries.isEmpty)
    }

    @Test func `a mount that was signed out comes back to its own account only`() async throws {
        try await withScratchFolder { folder in
            let home = try HomeDirectories(home: folder + "/home")
            func replica(_ number: UInt8) throws -> ContainerFolder {
                let id = try #require(ContainerID("Documents"))
                let key = [UInt8](repeating: number, count: 32)
                return try ContainerFolder.ensure(
                    ContainerInfo(id: id, key: key, layout: .drive, isCaseInsensitive: false, isReadOnly: false),
                    home
                )
            }
            let (mine, theirs) = (try replica(1), try replica(2))
            var table = MountTable()
            for name in ["Documents", "Unknown"] {
                table[name] = .init(
                    container: name,
                    mountPoint: ControlPath("/" + name),
                    options: [],
                    isImporting: true
                )
            }
            let before = table.entries
            table.signOut([mine])
            #expect(table.entries.map(\.signedOutReplica) == [mine.path])
            table.signOut([theirs])
            #expect(table.entries.map(\.signedOutReplica) == [mine.path])
            var (ours, others) = (table, table)
            var isChanged = ours.signIn([theirs, mine])
            #expect(isChanged)
            #expect(ours.entries == [before[0]])
            isChanged = ours.signIn([theirs])
            #expect(!isChanged)
            isChanged = others.signIn([theirs])
            #expect(isChanged)
            #expect(others.entries.isEmpty)
        }
    }

    @Test func `a full log begins anew and keeps its predecessor`() async throws {
        try await withScratchFolder { folder in
            let log = try #require(BoundedLog(path: folder + "/log", limit: 100))
            for number in 0..<20 { log.write("line \(number) of twenty") }
            #expect(try Files.names(in: folder).sorted() == ["log", "log.1"])
            #expect(try Files.text(folder + "/log").contains("line 19"))
            #expect(try Files.text(folder + "/log").utf8.count <= 100)
        }
    }
}
