import Crypto
import Glibc

/// What a folder contains, by relative path: to be compared with another one.
package struct Tree: Sendable {
    package enum Entry: Hashable, Sendable {
        case folder(mode: UInt32)
        case symlink(target: String)
        /// `modified` in nanoseconds; `digest` is empty where contents were not read.
        case file(size: Int64, modified: Int64, mode: UInt32, digest: String)
        case other
    }

    /// Bytes that are no UTF-8 stand as `\xHH`.
    package private(set) var entries: [String: Entry] = [:]

    /// Reads a whole tree. Folder times are left out: they come from the entries and are never sent.
    package init(_ folder: String, readingContents: Bool = true) throws {
        try add(Array(folder.utf8), as: [], readingContents: readingContents)
    }

    package var paths: [String] { entries.keys.sorted() }

    /// What stands against `other`, a line each; empty if the trees are equal.
    package func differences(from other: Tree) -> [String] {
        Set(entries.keys).union(other.entries.keys).sorted().compactMap { path in
            switch (entries[path], other.entries[path]) {
            case (let mine?, let theirs?) where mine == theirs: nil
            case (let mine?, let theirs?): "\(path): \(mine) here, \(theirs) there"
            case (_?, nil): "\(path): only here"
            case (nil, _): "\(path): only there"
            }
        }
    }

    private mutating func add(_ folder: [UInt8], as prefix: [UInt8], readingContents: Bool) throws {
        for name in try Files.rawNames(in: folder) {
            let path = folder + [0x2f] + name
            let relative = prefix.isEmpty ? name : prefix + [0x2f] + name
            let shown = Tree.printable(relative)
            var status = stat()
            guard path.withCString({ lstat($0, &status) }) == 0 else { throw SystemError("looking at", shown, errno) }
            switch status.st_mode & S_IFMT {
            case S_IFDIR:
                entries[shown] = .folder(mode: status.st_mode & 0o777)
                try add(path, as: relative, readingContents: readingContents)
            case S_IFLNK:
                var target = [CChar](repeating: 0, count: Int(PATH_MAX))
                let count = path.withCString { readlink($0, &target, target.count) }
                guard count >= 0 else { throw SystemError("reading the link", shown, errno) }
                entries[shown] = .symlink(target: Tree.printable(target[..<count].map(UInt8.init(bitPattern:))))
            case S_IFREG:
                entries[shown] = .file(
                    size: Int64(status.st_size),
                    modified: Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec),
                    mode: status.st_mode & 0o777,
                    digest: readingContents ? try Tree.digest(path) : ""
                )
            default:
                entries[shown] = .other
            }
        }
    }

    package static func digest(_ path: String) throws -> String {
        try digest(Array(path.utf8))
    }

    package static func digest(of bytes: [UInt8]) -> String {
        hexadecimal(SHA256.hash(data: bytes))
    }

    private static func digest(_ path: [UInt8]) throws -> String {
        let file = path.withCString { open($0, O_RDONLY | O_CLOEXEC) }
        guard file >= 0 else { throw SystemError("opening", printable(path), errno) }
        defer { close(file) }
        var hash = SHA256()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        while true {
            let count = read(file, buffer.baseAddress, buffer.count)
            if count < 0 { throw SystemError("reading", printable(path), errno) }
            if count == 0 { return hexadecimal(hash.finalize()) }
            hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }

    private static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef")
        return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }

    private static func printable(_ bytes: [UInt8]) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        return bytes.map { $0 < 0x80 ? String(UnicodeScalar($0)) : "\\x" + String($0, radix: 16) }.joined()
    }
}
