import Foundation
import Glibc
import Replica
import Testing
import UbiquityModel

@testable import SyncEngine

/// Packages as one file.
@Suite struct PackageArchiveTests {
    private static let long = String(repeating: "long name ", count: 15)

    private func element(
        _ path: String,
        _ kind: PackageIndex.Element.Kind,
        mode: UInt16 = 0o644,
        extended: [[UInt8]: [UInt8]] = [:]
    ) throws -> PackageIndex.Element {
        .init(path: try ItemPath(parsing: path), kind: kind, mode: mode, extended: extended)
    }

    private func file(
        _ size: Int64,
        _ seconds: Int64 = 1_600_000_000,
        _ nanoseconds: Int64 = 0
    )
        -> PackageIndex.Element.Kind
    {
        .file(size: size, modified: Timestamp(seconds: seconds, nanoseconds: nanoseconds))
    }

    private func archive(_ index: PackageIndex) throws -> PackageArchive {
        PackageArchive(
            index,
            name: try Name("D.rtfd"),
            modified: Timestamp(seconds: 1_700_000_000, nanoseconds: 0),
            mode: 0o755
        )
    }

    @Test func `tar unpacks what was packed`() throws {
        let index = PackageIndex([
            try element("empty", file(0)),
            try element("a", file(1000, 1_600_000_000, 7), mode: 0o755),
            try element("folder", .folder, mode: 0o700),
            try element("folder/b", file(512, -2, 500_000_000)),
            try element("folder/\(Self.long)", .folder, mode: 0o755),
            try element("folder/\(Self.long)/\(Self.long)", file(3)),
            try element("link", .symlink(target: Array("folder/b".utf8)), mode: 0),
            try element("long link", .symlink(target: Array((Self.long + "/x").utf8)), mode: 0),
            try element("with", file(2), extended: [Array("user.a=b%".utf8): [0, 10, 255]]),
        ])
        var content = index.encoded
        for (number, element) in index.elements.enumerated() {
            content += [UInt8](repeating: UInt8(0x41 + number), count: Int(element.size))
        }
        let archive = try archive(index)
        var bytes = [UInt8](repeating: 0xEE, count: Int(archive.size))
        for (offset, header) in archive.headers {
            bytes.replaceSubrange(Int(offset)..<Int(offset) + header.count, with: header)
        }
        for (element, offset) in index.files where element.size > 0 {
            let place = Int(try #require(archive.offset(of: offset)))
            bytes.replaceSubrange(
                place..<place + Int(element.size),
                with: content[Int(offset)..<Int(offset + element.size)]
            )
        }
        let folder = "/var/tmp/ubiquity-test-\(RevisionID.random())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Data(bytes).write(to: URL(fileURLWithPath: folder + "/archive"))
        let tar = Process()
        tar.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        tar.arguments = ["tar", "--xattrs", "--xattrs-include=user.*", "-xpf", folder + "/archive", "-C", folder]
        try tar.run()
        tar.waitUntilExit()
        #expect(tar.terminationStatus == 0)
        let package = folder + "/D.rtfd"
        for (element, offset) in index.files {
            let unpacked = try Data(contentsOf: URL(fileURLWithPath: package + "/" + element.path.description))
            #expect(Array(unpacked) == Array(content[Int(offset)..<Int(offset + element.size)]), "\(element.path)")
        }
        #expect(try status(package).st_mtim.tv_sec == 1_700_000_000)
        #expect(try status(package + "/a").st_mode == S_IFREG | 0o755)
        #expect(try status(package + "/a").st_mtim.tv_nsec == 7)
        #expect(try status(package + "/folder").st_mode == S_IFDIR | 0o700)
        let old = try status(package + "/folder/b").st_mtim
        #expect(old.tv_sec == -2 && old.tv_nsec == 500_000_000)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: package + "/link") == "folder/b")
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: package + "/long link") == Self.long + "/x")
        let file = open(package + "/with", O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        let value = try ExtendedAttributes.get(file, "user.a=b%")
        #expect(value == [0, 10, 255])
    }

    private func status(_ path: String) throws -> stat {
        var status = stat()
        try #require(lstat(path, &status) == 0, "\(path)")
        return status
    }

    @Test func `a file of any size has its place`() throws {
        let index = PackageIndex([
            try element("a", file(20_000_000_000)), try element("b", file(0)), try element("c", file(1)),
        ])
        let archive = try archive(index)
        let start = Int64(index.encoded.count)
        #expect(archive.offset(of: start - 1) == nil)
        let first = try #require(archive.offset(of: start))
        #expect(archive.offset(of: start + 19_999_999_999) == first + 19_999_999_999)
        // A header each for the empty file and this one.
        let padded: Int64 = 20_000_000_000 + 512 - 20_000_000_000 % 512
        let blocks = 20_000_000_000 % 512 == 0 ? 20_000_000_000 : padded
        #expect(archive.offset(of: start + 20_000_000_000) == first + blocks + 1024)
        let records = archive.headers.map { String(decoding: $0.bytes, as: UTF8.self) }
        #expect(records.contains("20 size=20000000000\n"))
        #expect(archive.size % 512 == 0)
    }

    @Test func `an empty package is a folder`() throws {
        let archive = try archive(PackageIndex([]))
        #expect(archive.size == 3 * 512)
        #expect(archive.headers.first?.bytes.prefix(8) == Array("D.rtfd/\u{0}".utf8)[...])
    }
}
