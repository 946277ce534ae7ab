internal import CLinux
internal import Glibc

/// What the C library says of an error number.
func message(of code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 256)
    guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
    return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}

extension ChunkStoreError {
    /// - Parameter code: a call's result: negative error numbers are failures.
    static func check(_ result: some BinaryInteger, _ what: @autoclosure () -> String) throws(ChunkStoreError) {
        guard result < 0 else { return }
        let code = Int32(truncatingIfNeeded: -Int64(result))
        switch code {
        case ENOSPC, EDQUOT, EFBIG: throw .noSpace
        default: throw .failed(what(), errno: code)
        }
    }
}

/// An open file or folder, closed with its last user.
final class OpenFile: Sendable {
    let descriptor: Int32
    let path: String

    init(_ path: String, flags: Int32, mode: UInt32 = 0o600) throws(ChunkStoreError) {
        descriptor = clinux_open_at(AT_FDCWD, path, flags, mode)
        self.path = path
        try ChunkStoreError.check(descriptor, "opening \(path)")
    }

    // Everything that matters was synced before: what closing could report was reported by then.
    deinit { if descriptor >= 0 { close(descriptor) } }

    func size() throws(ChunkStoreError) -> UInt64 {
        var status = clinux_status()
        try ChunkStoreError.check(clinux_status_of(descriptor, &status), "looking at \(path)")
        return UInt64(max(status.size, 0))
    }

    func write(_ bytes: [UInt8], at offset: UInt64) throws(ChunkStoreError) {
        let result = bytes.withUnsafeBytes { clinux_pwrite_all(descriptor, $0.baseAddress, $0.count, Int64(offset)) }
        try ChunkStoreError.check(result, "writing \(path)")
    }

    /// Writes the bytes of both, one after the other.
    func write(_ first: [UInt8], _ second: ArraySlice<UInt8>, at offset: UInt64) throws(ChunkStoreError) {
        let result = first.withUnsafeBytes { first in
            second.withUnsafeBytes { second in
                clinux_pwrite_two(
                    descriptor,
                    first.baseAddress,
                    first.count,
                    second.baseAddress,
                    second.count,
                    Int64(offset)
                )
            }
        }
        try ChunkStoreError.check(result, "writing \(path)")
    }

    /// Up to `count` bytes: fewer at the end of the file.
    func read(_ count: Int, at offset: UInt64) throws(ChunkStoreError) -> [UInt8] {
        var result: Int64 = 0
        var done = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while done < count {
                let next = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[done...])
                result = clinux_pread(descriptor, next.baseAddress, next.count, Int64(offset) + Int64(done))
                guard result > 0 else { break }
                done += Int(result)
            }
            filled = done
        }
        try ChunkStoreError.check(result, "reading \(path)")
        return bytes
    }

    /// Fills two rooms, one after the other, with what lies together. Returns how many bytes there were: fewer at the end of the file.
    func read(
        into first: UnsafeMutableRawBufferPointer,
        _ second: UnsafeMutableRawBufferPointer,
        at offset: UInt64
    ) throws(ChunkStoreError) -> Int {
        let result = clinux_pread_two(
            descriptor,
            first.baseAddress,
            first.count,
            second.baseAddress,
            second.count,
            Int64(offset)
        )
        try ChunkStoreError.check(result, "reading \(path)")
        return Int(result)
    }

    /// Makes what was written durable.
    func synchronize() throws(ChunkStoreError) {
        try ChunkStoreError.check(clinux_fsync(descriptor), "syncing \(path)")
    }

    func truncate(_ size: UInt64) throws(ChunkStoreError) {
        try ChunkStoreError.check(clinux_truncate(descriptor, Int64(size)), "truncating \(path)")
    }
}
