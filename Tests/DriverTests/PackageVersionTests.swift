import Glibc
import Replica
import Synchronization
import SystemPackage
import TestSupport
import Testing
import UbiquityModel

@testable import Driver

extension DriverTests {
    /// Versions of folders that are one document, under `.versions`.
    @Suite(.serialized)
    struct PackageVersionTests {
        private static func path(_ text: String) throws -> ItemPath { try ItemPath(parsing: text) }

        private static let modified = Timestamp(seconds: 1_600_000_000, nanoseconds: 7)

        private static func index() throws -> PackageIndex {
            PackageIndex([
                .init(path: try path("pics"), kind: .folder, mode: 0o750),
                .init(path: try path("pics/a"), kind: .file(size: 5, modified: modified), mode: 0o644),
                .init(
                    path: try path("pics/b"),
                    kind: .file(size: 3, modified: modified),
                    mode: 0o755,
                    extended: [Array("user.x".utf8): Array("y".utf8)]
                ),
                .init(path: try path("empty"), kind: .file(size: 0, modified: modified), mode: 0o600),
                .init(path: try path("link"), kind: .symlink(target: Array("pics/a".utf8)), mode: 0),
            ])
        }

        private func version(_ index: PackageIndex, _ kind: ItemVersion.Kind = .conflict) throws -> ItemVersion {
            ItemVersion(
                revision: .random(),
                kind: kind,
                content: try #require(ContentID(bytes: [UInt8](repeating: 0, count: 32))),
                size: index.contentSize,
                edited: Timestamp(nanoseconds: 1_795_256_102_123_000_000),
                modified: Self.modified,
                device: "laptop",
                name: Mounted.name("D.rtfd")
            )
        }

        /// A mount with one version of a package, which has this entry in `.versions`.
        private func withVersion(_ body: (Mounted, ItemVersion, _ entry: String) throws -> Void) throws {
            try mounted { m in
                let index = try Self.index()
                let version = try version(index)
                m.host.state.withLock { state in
                    state.listings[.root] = VersionListing(kind: .folder)
                    state.listings[ItemPath([Mounted.name("D.rtfd")])] = VersionListing(
                        kind: .package,
                        versions: [version]
                    )
                    state.contents[version.revision] = index.encoded + Array("aaaaabbb".utf8)
                    state.packageIndexes[version.revision] = index
                }
                try body(m, version, m.path(".versions/D.rtfd/2026-11-21T10:15:02.123Z laptop conflict.rtfd"))
            }
        }

        @Test
        func `a version is a folder with everything as it was`() throws {
            try withVersion { m, _, entry in
                #expect(
                    try Files.names(in: m.path(".versions/D.rtfd")).map { m.path(".versions/D.rtfd/" + $0) } == [entry]
                )
                #expect(try Files.status(entry).st_mode & S_IFMT == S_IFDIR)
                #expect(try Files.names(in: entry) == ["empty", "link", "pics"])
                #expect(try Files.names(in: entry + "/pics") == ["a", "b"])
                #expect(try Files.status(entry + "/pics").st_mode == S_IFDIR | 0o750)
                #expect(try Files.text(entry + "/pics/a") == "aaaaa")
                #expect(try Files.text(entry + "/pics/b") == "bbb")
                #expect(try Files.text(entry + "/empty") == "")
                #expect(try Files.target(of: entry + "/link") == "pics/a")
                #expect(try Files.text(entry + "/link") == "aaaaa")
                let file = try Files.status(entry + "/pics/b")
                #expect(file.st_mode == S_IFREG | 0o555 && file.st_size == 3 && file.st_blocks == 1)
                #expect(file.st_mtim.tv_sec == 1_600_000_000 && file.st_mtim.tv_nsec == 7)
                #expect(try Files.attribute("user.x", of: entry + "/pics/b") == "y")
                #expect(try Files.attributeNames(of: entry + "/pics/b") == ["user.x"])
                #expect(!Files.exists(entry + "/other") && !Files.exists(entry + "/pics/a/b"))
                try succeed("cp", "-a", entry, m.path("copy.rtfd"))
                #expect(try Files.text(m.path("copy.rtfd/pics/a")) == "aaaaa")
                #expect(try Files.attribute("user.x", of: m.path("copy.rtfd/pics/b")) == "y")
            }
        }

        @Test
        func `nothing in it can be changed`() throws {
            try withVersion { m, _, entry in
                #expect(openFailure(entry + "/pics/a", O_WRONLY) == EROFS)
                #expect(openFailure(entry + "/pics/a", O_RDONLY | O_TRUNC) == EROFS)
                #expect(openFailure(entry + "/new", O_WRONLY | O_CREAT) == EROFS)
                #expect(failure(mkdir(entry + "/pics/new", 0o755)) == EROFS)
                #expect(failure(symlink("x", entry + "/new")) == EROFS)
                #expect(failure(chmod(entry + "/pics/a", 0o600)) == EROFS)
                #expect(failure(truncate(entry + "/pics/a", 0)) == EROFS)
                #expect(failure(rename(entry + "/pics", m.path("moved"))) == EXDEV)
                #expect(failure(rmdir(m.path(".versions/D.rtfd"))) == EROFS)
                // `rm` asks for what forbids it, and gives up for anything else.
                #expect(failure(access(entry + "/pics/a", W_OK)) == EACCES)
            }
        }

        @Test
        func `only taking away the whole resolves`() throws {
            try withVersion { m, version, entry in
                #expect(failure(unlink(entry + "/pics/a")) == nil)
                #expect(failure(unlink(entry + "/pics")) == EISDIR)
                #expect(failure(rmdir(entry + "/pics")) == nil)
                #expect(m.host.state.withLock { $0.removedVersions } == [])
                #expect(try Files.names(in: entry + "/pics") == ["a", "b"])
                #expect(try Files.text(entry + "/pics/a") == "aaaaa")
                try succeed("rm", "-r", entry)
                #expect(m.host.state.withLock { $0.removedVersions } == [version.revision])
                #expect(!Files.exists(entry))
            }
        }

        @Test
        func `each file has its part of the content`() throws {
            let index = try Self.index()
            let contents = VersionContents(index)
            let start = Int64(index.encoded.count)
            #expect(try contents[Self.path("pics/a")]?.part == start..<start + 5)
            #expect(try contents[Self.path("pics/b")]?.part == start + 5..<start + 8)
            #expect(try contents[Self.path("empty")]?.part.isEmpty == true)
            #expect(contents[.root] == nil)
            #expect(try contents[Self.path("pics/c")] == nil)
            #expect(contents.entries(of: .root).map(\.element.path.description) == ["empty", "link", "pics"])
        }
    }
}
