import CLinux
package import Glibc

/// File access by plain system calls: what is tested is what these calls do.
package enum Files {
    package static func read(_ path: String) throws -> [UInt8] {
        let file = try open(path, O_RDONLY)
        defer { close(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = Glibc.read(file, &buffer, buffer.count)
            if count < 0 { throw SystemError("reading", path, errno) }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
        }
    }

    /// The first bytes of a file.
    package static func read(_ path: String, count: Int) throws -> [UInt8] {
        let file = try open(path, O_RDONLY)
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: count)
        let filled = Glibc.read(file, &buffer, count)
        guard filled >= 0 else { throw SystemError("reading", path, errno) }
        return Array(buffer[..<filled])
    }

    package static func text(_ path: String) throws -> String {
        String(decoding: try read(path), as: UTF8.self)
    }

    /// Makes or overwrites a file; with `isSynchronized` it is on the disk afterwards.
    package static func write(_ bytes: [UInt8], to path: String, isSynchronized: Bool = false) throws {
        let file = try open(path, O_WRONLY | O_CREAT | O_TRUNC)
        do {
            try write(bytes, descriptor: file, path: path)
            if isSynchronized, fsync(file) != 0 { throw SystemError("synchronizing", path, errno) }
        } catch {
            close(file)
            throw error
        }
        if close(file) != 0 { throw SystemError("closing", path, errno) }
    }

    /// Changes a file's bytes where they are.
    package static func overwrite(_ bytes: [UInt8], at path: String) throws {
        let file = try open(path, O_WRONLY)
        defer { close(file) }
        try write(bytes, descriptor: file, path: path)
    }

    package static func write(_ text: String, to path: String) throws {
        try write(Array(text.utf8), to: path)
    }

    package static func append(_ text: String, to path: String) throws {
        let file = try open(path, O_WRONLY | O_APPEND)
        defer { close(file) }
        try write(Array(text.utf8), descriptor: file, path: path)
    }

    /// As editors save: a new file beside it, renamed over.
    package static func replace(_ path: String, with bytes: [UInt8], isSynchronized: Bool = false) throws {
        let new = path + ".new~"
        try write(bytes, to: new, isSynchronized: isSynchronized)
        try rename(new, to: path)
    }

    package static func rename(_ source: String, to target: String) throws {
        if Glibc.rename(source, target) != 0 { throw SystemError("renaming", source, errno) }
    }

    package static func makeFolder(_ path: String) throws {
        if mkdir(path, 0o755) != 0 { throw SystemError("making the folder", path, errno) }
    }

    package static func remove(_ path: String) throws {
        if unlink(path) != 0 { throw SystemError("removing", path, errno) }
    }

    package static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// Of a symbolic link.
    package static func target(of path: String) throws -> String {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path, &target, target.count)
        guard count >= 0 else { throw SystemError("reading the link", path, errno) }
        return String(decoding: target[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    package static func status(_ path: String) throws -> stat {
        var status = stat()
        if lstat(path, &status) != 0 { throw SystemError("looking at", path, errno) }
        return status
    }

    /// Bytes that the disk holds for a file, or for everything in a folder.
    package static func allocated(_ path: String) throws -> Int64 {
        let status = try status(path)
        var sum = Int64(status.st_blocks) * 512
        if status.st_mode & S_IFMT == S_IFDIR {
            for name in try names(in: path) { sum += try allocated(path + "/" + name) }
        }
        return sum
    }

    /// The sum of the sizes of the files in a folder.
    package static func size(_ path: String) throws -> Int64 {
        let status = try status(path)
        guard status.st_mode & S_IFMT == S_IFDIR else { return Int64(status.st_size) }
        return try names(in: path).reduce(0) { try $0 + size(path + "/" + $1) }
    }

    /// The names in a folder, sorted. Names that are not UTF-8 get replacement characters: see `Tree` for exact ones.
    package static func names(in path: String) throws -> [String] {
        try rawNames(in: Array(path.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    package static func rawNames(in path: [UInt8]) throws -> [[UInt8]] {
        let shown = String(decoding: path, as: UTF8.self)
        guard let folder = path.withCString(opendir) else { throw SystemError("listing", shown, errno) }
        defer { closedir(folder) }
        var names: [[UInt8]] = []
        while true {
            errno = 0
            guard let entry = readdir(folder) else {
                if errno != 0 { throw SystemError("listing", shown, errno) }
                break
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name != [0x2e], name != [0x2e, 0x2e] { names.append(name) }
        }
        return names.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// An extended attribute; `nil` where there is none.
    package static func attribute(_ name: String, of path: String) throws -> String? {
        try withHandle(on: path) { file in
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            let count = clinux_xattr_get(file, name, &buffer, buffer.count)
            if count == -Int64(ENODATA) { return nil }
            guard count >= 0 else { throw SystemError("reading \(name) of", path, Int32(-count)) }
            return String(decoding: buffer[..<Int(count)], as: UTF8.self)
        }
    }

    package static func setAttribute(_ name: String, of path: String, to value: String) throws {
        try withHandle(on: path) { file in
            let result = clinux_xattr_set(file, name, value, value.utf8.count, 0)
            guard result == 0 else { throw SystemError("setting \(name) of", path, -result) }
        }
    }

    package static func attributeNames(of path: String) throws -> [String] {
        try withHandle(on: path) { file in
            var buffer = [CChar](repeating: 0, count: 1 << 16)
            let count = clinux_xattr_list(file, &buffer, buffer.count)
            guard count >= 0 else { throw SystemError("listing the attributes of", path, Int32(-count)) }
            return buffer[..<Int(count)].split(separator: 0).map {
                String(decoding: $0.map(UInt8.init(bitPattern:)), as: UTF8.self)
            }
        }
    }

    /// Lends a descriptor that names the file without opening it.
    private static func withHandle<Result>(on path: String, _ body: (Int32) throws -> Result) throws -> Result {
        let file = try open(path, Int32(CLINUX_O_PATH))
        defer { close(file) }
        return try body(file)
    }

    /// The errno that opening and reading one byte gives; `nil` if it succeeds.
    package static func readFailure(_ path: String, _ flags: Int32 = O_RDONLY, at offset: Int = 0) -> Int32? {
        do {
            let file = try open(path, flags)
            defer { close(file) }
            var byte: UInt8 = 0
            return pread(file, &byte, 1, offset) < 0 ? errno : nil
        } catch {
            return (error as? SystemError)?.code
        }
    }

    /// The caller closes the descriptor.
    package static func open(_ path: String, _ flags: Int32) throws -> Int32 {
        let file = Glibc.open(path, flags | O_CLOEXEC, 0o644)
        if file < 0 { throw SystemError("opening", path, errno) }
        return file
    }

    package static func write(_ bytes: [UInt8], descriptor: Int32, path: String) throws {
        try bytes.withUnsafeBytes { bytes in
            var done = 0
            while done < bytes.count {
                let count = Glibc.write(descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done)
                if count < 0 { throw SystemError("writing", path, errno) }
                done += count
            }
        }
    }
}

extension [UInt8] {
    /// The bytes as a C string: for names that are not UTF-8.
    func withCString<Result>(_ body: (UnsafePointer<CChar>) throws -> Result) rethrows -> Result {
        try (map(CChar.init(bitPattern:)) + [0]).withUnsafeBufferPointer { buffer in
            // A buffer with at least its final zero has an address.
            // swift-format-ignore: NeverForceUnwrap
            try body(buffer.baseAddress!)
        }
    }
}
