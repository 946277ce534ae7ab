internal import CLinux
internal import Glibc
internal import UbiquityModel

/// A small JSON file of ours: readable by its owner only, replaced as a whole, versioned.
package enum StateFile {
    /// Every such file has `format` in it. An older program does nothing with a newer format: it would lose what it does not know.
    private struct Head: Codable { var format: UInt32 }

    /// `nil` if there is none.
    package static func read<Value: Decodable>(_ type: Value.Type, from path: String) throws(ControlError) -> Value? {
        guard let bytes = try bytes(of: path) else { return nil }
        do throws(ControlError) {
            let head = try ControlCoding.decode(Head.self, from: bytes)
            guard head.format <= FormatVersion.configuration else {
                throw ControlError(path, "was written by a newer version of ubiquity", remedy: "update ubiquity here")
            }
            return try ControlCoding.decode(type, from: bytes)
        } catch {
            if error.what == path { throw error }
            throw ControlError(path, "is damaged: \(error.why)", remedy: "move it away and sign in again")
        }
    }

    /// Durable when it returns: written beside, synced, renamed, the folder synced.
    package static func write(_ value: some Encodable, to path: String) throws(ControlError) {
        let bytes = try ControlCoding.encodePretty(value) + [UInt8(ascii: "\n")]
        let temporary = "\(path).new-\(getpid())"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure(path) }
        var status = bytes.withUnsafeBytes { clinux_pwrite_all(descriptor, $0.baseAddress, $0.count, 0) }
        if status >= 0 { status = clinux_fsync(descriptor) }
        close(descriptor)
        guard status >= 0 else {
            unlink(temporary)
            throw ControlError(path, "cannot be written: \(systemMessage(status))")
        }
        guard rename(temporary, path) == 0 else {
            defer { unlink(temporary) }
            throw failure(path)
        }
        try synchronizeFolder(of: path)
    }

    /// The same; on a disk that is full, in the room that is kept for it.
    package static func write(
        _ value: some Encodable,
        to path: String,
        of home: HomeDirectories
    ) throws(ControlError) {
        do throws(ControlError) { try write(value, to: path) } catch {
            guard unlink(home.reserveFile) == 0 else { throw error }
            try write(value, to: path)
        }
    }

    /// Durable when it returns. A file that is not there is none that had to go.
    package static func remove(_ path: String) throws(ControlError) {
        guard unlink(path) == 0 || errno == ENOENT else {
            throw ControlError(path, "cannot be removed: \(systemMessage(errno))")
        }
        try synchronizeFolder(of: path)
    }

    private static func bytes(of path: String) throws(ControlError) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw ControlError(path, "cannot be read: \(systemMessage(errno))")
        }
        defer { close(descriptor) }
        var result = [UInt8]()
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = clinux_pread(descriptor, &buffer, buffer.count, Int64(result.count))
            if count < 0 { throw ControlError(path, "cannot be read: \(systemMessage(Int32(count)))") }
            if count == 0 { return result }
            result += buffer[..<Int(count)]
        }
    }

    /// What was made, renamed or removed in the folder of a file is durable when it returns.
    package static func synchronizeFolder(of path: String) throws(ControlError) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let descriptor = open(folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(path) }
        defer { close(descriptor) }
        let status = clinux_fsync(descriptor)
        guard status >= 0 else { throw ControlError(path, "cannot be synced: \(systemMessage(status))") }
    }

    private static func failure(_ path: String) -> ControlError {
        ControlError(path, "cannot be written: \(systemMessage(errno))")
    }
}
