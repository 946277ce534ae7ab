import Glibc

/// An open file that is closed explicitly, or with its last use.
struct OpenFile: ~Copyable {
    let descriptor: Int32
    private let path: String
    private var isOpen = true

    init(_ path: String, _ flags: Int32) throws(SystemError) {
        self.path = path
        descriptor = try check("open", path, open(path, flags | O_CLOEXEC, 0o644))
    }

    /// All of it; a disk that is full is an error.
    func write(_ bytes: UnsafeRawPointer, _ count: Int) throws(SystemError) {
        var done = 0
        while done < count { done += try check("write", path, Glibc.write(descriptor, bytes + done, count - done)) }
    }

    consuming func close() throws(SystemError) {
        isOpen = false
        _ = try check("close", path, Glibc.close(descriptor))
    }

    deinit {
        if isOpen { _ = Glibc.close(descriptor) }
    }
}

/// A file in memory, shared with the file.
struct Mapping: ~Copyable {
    let bytes: UnsafeMutablePointer<UInt8>
    private let size: Int
    private let file: OpenFile
    private let path: String

    init(_ path: String, _ size: Int, writable: Bool) throws(SystemError) {
        let file = try OpenFile(path, writable ? O_RDWR : O_RDONLY)
        let address = mmap(nil, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, file.descriptor, 0)
        guard let address, address != MAP_FAILED else { throw SystemError(call: "mmap", subject: path, errno: errno) }
        bytes = address.assumingMemoryBound(to: UInt8.self)
        self.file = file
        self.size = size
        self.path = path
    }

    func sync() throws(SystemError) {
        _ = try check("msync", path, msync(bytes, size, MS_SYNC))
    }

    consuming func end() throws(SystemError) {
        _ = try check("munmap", path, munmap(bytes, size))
        try file.close()
    }
}

/// Memory aligned for any kind of read.
struct Buffer: ~Copyable {
    let pointer: UnsafeMutableRawPointer
    private let size: Int

    init(_ size: Int) {
        self.size = size
        pointer = .allocate(byteCount: size, alignment: 4096)
        pointer.initializeMemory(as: UInt8.self, repeating: 0, count: size)
    }

    /// Bytes that do not compress.
    func fill(seed: UInt64) {
        var numbers = Numbers(seed: seed)
        for offset in stride(from: 0, to: size, by: 8) {
            pointer.storeBytes(of: numbers.next(), toByteOffset: offset, as: UInt64.self)
        }
    }

    deinit { pointer.deallocate() }
}

/// SplitMix64: the same numbers in every run.
struct Numbers: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
