import Glibc

/// Rows about the content of a large file, in the current folder. One figure is one MiB, or one block of 4 KiB.
struct DataRows {
    private static let mebibyte = 1 << 20
    private static let block = 4096
    private static let blocksTaken = 10_000
    /// What `cat` and `cp` take at a time.
    private static let transfer = 128 << 10

    private let size: Int

    init(_ sizes: Sizes) { size = sizes.mebibytes * Self.mebibyte }

    /// A new file, written and closed; not synced: what a disk does with it later is not the filesystem's.
    func write() throws(SystemError) -> Figure {
        let path = "write-\(getpid())"
        let buffer = Buffer(Self.transfer)
        buffer.fill(seed: 1)
        let time = try elapsed { () throws(SystemError) in
            let file = try OpenFile(path, O_CREAT | O_EXCL | O_WRONLY)
            for _ in 0..<size / Self.transfer {
                try file.write(buffer.pointer, Self.transfer)
            }
            try file.close()
        }
        _ = try check("unlink", path, unlink(path))
        return stream(time, size)
    }

    func read(cached: Bool) throws(SystemError) -> Figure {
        let buffer = Buffer(Self.transfer)
        if cached { try readAll(buffer) } else { try forget() }
        return stream(try elapsed { () throws(SystemError) in try readAll(buffer) }, size)
    }

    func randomRead(cached: Bool) throws(SystemError) -> Figure {
        let buffer = Buffer(Self.transfer)
        if cached { try readAll(buffer) } else { try forget() }
        let offsets = randomOffsets()
        let time = try elapsed { () throws(SystemError) in
            let file = try OpenFile(Names.big, O_RDONLY)
            for offset in offsets {
                _ = try check("pread", Names.big, pread(file.descriptor, buffer.pointer, Self.block, offset))
            }
            try file.close()
        }
        return Figure(.random, nanoseconds: time, count: offsets.count)
    }

    /// Blocks of an existing file. Closing it counts: some only write then.
    func randomWrite() throws(SystemError) -> Figure {
        let buffer = Buffer(Self.transfer)
        buffer.fill(seed: 2)
        try readAll(Buffer(Self.transfer))
        let offsets = randomOffsets()
        let time = try elapsed { () throws(SystemError) in
            let file = try OpenFile(Names.big, O_WRONLY)
            for offset in offsets {
                _ = try check("pwrite", Names.big, pwrite(file.descriptor, buffer.pointer, Self.block, offset))
            }
            try file.close()
        }
        return Figure(.random, nanoseconds: time, count: offsets.count)
    }

    /// A byte of each page, in order, of what no cache has.
    func mmapRead() throws(SystemError) -> Figure {
        try forget()
        var sum: UInt64 = 0
        let time = try elapsed { () throws(SystemError) in
            let mapping = try Mapping(Names.big, size, writable: false)
            for offset in stride(from: 0, to: size, by: Self.block) {
                sum &+= UInt64(mapping.bytes[offset])
            }
            try mapping.end()
        }
        // Always so: the loop may not be optimised away.
        guard sum != .max else { throw SystemError(call: "mmap", subject: Names.big, errno: EIO) }
        return stream(time, size)
    }

    /// Stores into each page of a quarter of the file, which is cached, and syncs them.
    func mmapWrite() throws(SystemError) -> Figure {
        try readAll(Buffer(Self.transfer))
        let part = size / 4
        let time = try elapsed { () throws(SystemError) in
            let mapping = try Mapping(Names.big, part, writable: true)
            for offset in stride(from: 0, to: part, by: Self.block) {
                mapping.bytes[offset] = UInt8(truncatingIfNeeded: offset >> 12)
            }
            try mapping.sync()
            try mapping.end()
        }
        return stream(time, part)
    }

    private func stream(_ nanoseconds: UInt64, _ bytes: Int) -> Figure {
        Figure(.stream, nanoseconds: nanoseconds, count: bytes / Self.mebibyte)
    }

    private func readAll(_ buffer: borrowing Buffer) throws(SystemError) {
        let file = try OpenFile(Names.big, O_RDONLY)
        var total = 0
        while true {
            let count = try check("read", Names.big, Glibc.read(file.descriptor, buffer.pointer, Self.transfer))
            if count == 0 { break }
            total += count
        }
        guard total == size else {
            throw SystemError(call: "read (\(total) bytes)", subject: Names.big, errno: ENODATA)
        }
        try file.close()
    }

    /// Takes the file out of the cache of this filesystem; the caller has done more where he may.
    private func forget() throws(SystemError) {
        let file = try OpenFile(Names.big, O_RDONLY)
        _ = posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_DONTNEED)
        try file.close()
    }

    /// The same in every run.
    private func randomOffsets() -> [Int] {
        var numbers = Numbers(seed: 3)
        return (0..<Self.blocksTaken).map { _ in
            Int(numbers.next() % UInt64(size / Self.block)) * Self.block
        }
    }
}
