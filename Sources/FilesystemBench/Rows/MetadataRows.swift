import Glibc

/// Rows about names, attributes and small files, in the current folder. One figure is one name.
struct MetadataRows {
    private static let fileSize = 4096

    private let sizes: Sizes

    init(_ sizes: Sizes) { self.sizes = sizes }

    /// Open with O_CREAT, write 4 KiB, close.
    func create() throws(SystemError) -> Figure {
        let folder = try newFolder("create")
        let paths = made(in: folder, "f")
        let time = try elapsed { () throws(SystemError) in try createAll(paths) }
        try remove(paths, folder)
        return figure(time)
    }

    func rename() throws(SystemError) -> Figure {
        let folder = try newFolder("rename")
        let paths = made(in: folder, "f")
        let targets = made(in: folder, "g")
        try createAll(paths)
        let time = try elapsed { () throws(SystemError) in
            try paths.each(with: targets) { (from, to) throws(SystemError) in
                _ = try check("rename", String(cString: from), Glibc.rename(from, to))
            }
        }
        try remove(targets, folder)
        return figure(time)
    }

    func unlink() throws(SystemError) -> Figure {
        let folder = try newFolder("unlink")
        let paths = made(in: folder, "f")
        try createAll(paths)
        let time = try elapsed { () throws(SystemError) in try unlinkAll(paths) }
        _ = try check("rmdir", folder, rmdir(folder))
        return figure(time)
    }

    func stat(warm: Bool) throws(SystemError) -> Figure {
        let paths = Paths(sizes.files, Names.file)
        return try timed(warm, count: sizes.files) { () throws(SystemError) in
            var attributes = Glibc.stat()
            try paths.each { (path) throws(SystemError) in
                _ = try check("stat", String(cString: path), lstat(path, &attributes))
            }
        }
    }

    /// Open, read all 4 KiB and the end, close, as `cat` does.
    func openRead(warm: Bool) throws(SystemError) -> Figure {
        let paths = Paths(sizes.files, Names.file)
        let buffer = UnsafeMutableRawPointer.allocate(byteCount: 2 * Self.fileSize, alignment: Self.fileSize)
        defer { buffer.deallocate() }
        return try timed(warm, count: sizes.files) { () throws(SystemError) in
            try paths.each { (path) throws(SystemError) in
                let file = try check("open", String(cString: path), open(path, O_RDONLY | O_CLOEXEC))
                while try check("read", String(cString: path), Glibc.read(file, buffer, 2 * Self.fileSize)) > 0 {}
                _ = try check("close", String(cString: path), close(file))
            }
        }
    }

    /// All names of the large folder.
    func readdir(warm: Bool) throws(SystemError) -> Figure {
        try timed(warm, count: sizes.entries) { () throws(SystemError) in
            let folder = opendir(Names.many)
            guard let folder else { throw SystemError(call: "opendir", subject: Names.many, errno: errno) }
            defer { closedir(folder) }
            var count = 0
            errno = 0
            while Glibc.readdir(folder) != nil { count += 1 }
            guard errno == 0 else { throw SystemError(call: "readdir", subject: Names.many, errno: errno) }
            guard count == sizes.entries + 2 else {
                throw SystemError(call: "readdir (\(count) names)", subject: Names.many, errno: ENOENT)
            }
        }
    }

    /// One pass over what is cold. Warm ones are short: as many as make a tenth of a second, after one that is not timed.
    private func timed(
        _ warm: Bool,
        count: Int,
        _ body: () throws(SystemError) -> Void
    ) throws(SystemError) -> Figure {
        if warm { try body() }
        var total = try elapsed(body)
        var passes = 1
        while warm && total < 100_000_000 {
            total += try elapsed(body)
            passes += 1
        }
        return Figure(.metadata, nanoseconds: total, count: count * passes)
    }

    private func figure(_ nanoseconds: UInt64) -> Figure {
        Figure(.metadata, nanoseconds: nanoseconds, count: sizes.files)
    }

    private func newFolder(_ name: String) throws(SystemError) -> String {
        let folder = "\(name)-\(getpid())"
        _ = try check("mkdir", folder, mkdir(folder, 0o755))
        return folder
    }

    private func made(in folder: String, _ letter: String) -> Paths {
        Paths(sizes.files) { "\(folder)/\(letter)\(Names.padded($0, 6))" }
    }

    private func createAll(_ paths: borrowing Paths) throws(SystemError) {
        let content = UnsafeMutableRawPointer.allocate(byteCount: Self.fileSize, alignment: Self.fileSize)
        content.initializeMemory(as: UInt8.self, repeating: 0x61, count: Self.fileSize)
        defer { content.deallocate() }
        try paths.each { (path) throws(SystemError) in
            let file = try check(
                "create",
                String(cString: path),
                open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o644)
            )
            _ = try check("write", String(cString: path), Glibc.write(file, content, Self.fileSize))
            _ = try check("close", String(cString: path), close(file))
        }
    }

    private func unlinkAll(_ paths: borrowing Paths) throws(SystemError) {
        try paths.each { (path) throws(SystemError) in
            _ = try check("unlink", String(cString: path), Glibc.unlink(path))
        }
    }

    private func remove(_ paths: borrowing Paths, _ folder: String) throws(SystemError) {
        try unlinkAll(paths)
        _ = try check("rmdir", folder, rmdir(folder))
    }
}
