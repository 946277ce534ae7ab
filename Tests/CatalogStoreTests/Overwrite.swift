import Glibc
import TestSupport

/// Writes over bytes of a file, as a bad disk does.
func overwrite(_ path: String, at offset: Int, with bytes: [UInt8]) throws {
    let file = try Files.open(path, O_WRONLY)
    defer { close(file) }
    guard pwrite(file, bytes, bytes.count, offset) == bytes.count else { throw SystemError("writing", path, errno) }
}

func shorten(_ path: String, to size: Int) throws {
    guard truncate(path, size) == 0 else { throw SystemError("truncating", path, errno) }
}
