internal import CLinux
internal import Glibc
package import UbiquityControl

/// The folder at which a container appears.
package enum MountPoint {
    package enum Condition: Sendable, Hashable {
        /// An empty folder: ready.
        case empty
        /// A folder with something in it.
        case occupied
        /// A live mount of ours, by this service or another one.
        case ubiquity
        /// What a service left behind that was killed: no access to it works.
        case dead
        /// Something else is mounted there.
        case foreign(String)
    }

    /// Makes the folder if there is none.
    /// - Returns: its path without links, and the folders that were made, for `HomeDirectories.removeEmptyFolders`.
    package static func prepare(_ typed: [UInt8]) throws(ControlError) -> (path: ControlPath, made: [String]) {
        let shown = String(decoding: typed, as: UTF8.self)
        guard !typed.isEmpty, !typed.contains(0) else { throw ControlError(.usage, "DIR", "it is empty") }
        if let path = real(typed) { return (ControlPath(bytes: path), []) }
        let code = errno
        // A dead mount has a path, but nothing below it: its parent tells the path.
        if code == ENOTCONN { return (try ItemArgument(resolving: typed).path, []) }
        guard code == ENOENT else { throw ControlError(shown, systemMessage(code)) }
        let made = try HomeDirectories.makeFolders(shown, mode: 0o777)
        guard let path = real(typed) else {
            let code = errno
            HomeDirectories.removeEmptyFolders(made)
            throw ControlError(shown, systemMessage(code))
        }
        return (ControlPath(bytes: path), made)
    }

    /// The path without links of a mount point that may be dead.
    package static func existing(_ typed: [UInt8]) throws(ControlError) -> ControlPath {
        guard !typed.isEmpty, !typed.contains(0) else { throw ControlError(.usage, "DIR", "it is empty") }
        if let path = real(typed) { return ControlPath(bytes: path) }
        return try ItemArgument(resolving: typed).path
    }

    package static func condition(of path: ControlPath) throws(ControlError) -> Condition {
        let mount = MountInfo.mounted(at: path.bytes)
        // What is ours is not opened for reading: its content may be on its way, or out of reach.
        let isOurs = mount?.isUbiquity == true
        let access = isOurs ? Int32(CLINUX_O_PATH) : O_RDONLY
        let descriptor = open(terminated(path), access | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else {
            switch errno {
            case let code where isOurs && (code == ENOTCONN || code == ECONNABORTED): return .dead
            // Another user's, or signed out; or mounted in this very moment.
            case EACCES where isOurs: return .ubiquity
            case _ where !isOurs && MountInfo.mounted(at: path.bytes)?.isUbiquity == true: return .ubiquity
            case ENOTDIR: throw ControlError("\(path)", "it is not a folder")
            case let code: throw ControlError("\(path)", systemMessage(code))
            }
        }
        defer { close(descriptor) }
        // Mounted in this very moment, by a service that is just starting: the descriptor may be of either.
        if mount == nil, MountInfo.mounted(at: path.bytes)?.isUbiquity == true { return .ubiquity }
        if let mount {
            guard mount.isUbiquity else {
                // A disk of its own may well be a mount point: what counts is whether it is empty.
                return mount.type.hasPrefix("fuse")
                    ? .foreign(mount.source) : try isEmpty(descriptor, path) ? .empty : .occupied
            }
            // Opening the root of a dead mount may be answered from the cache, asking the filesystem never is.
            var status = statvfs()
            return fstatvfs(descriptor, &status) == 0 ? .ubiquity : .dead
        }
        return try isEmpty(descriptor, path) ? .empty : .occupied
    }

    /// Takes a dead mount away. Processes that are still in it stay there; the folder is free at once.
    package static func detach(_ path: ControlPath) throws(ControlError) {
        if clinux_detach_mount(terminated(path)) == 0 { return }
        // An ordinary user may not do it himself; fusermount3 may, for his own mounts.
        let arguments = ["fusermount3", "-u", "-z", "-q", "--", "\(path)"]
        let child = withArguments(arguments) { clinux_spawn_foreground($0, environ) }
        guard child > 0, clinux_wait_child(child) == 0 else {
            throw ControlError("\(path)", "a dead mount is in the way", remedy: "as root, `umount -l \(path)`")
        }
    }

    private static func isEmpty(_ descriptor: Int32, _ path: ControlPath) throws(ControlError) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 32768)
        var count = 0
        while true {
            let length = clinux_getdents(descriptor, &buffer, buffer.count)
            if length < 0 { throw ControlError("\(path)", systemMessage(Int32(length))) }
            if length == 0 { return count <= 2 }
            // Each entry has at least 24 bytes; `.` and `..` alone take 48.
            var offset = 0
            while offset + 18 < Int(length) {
                offset += Int(buffer[offset + 16]) | Int(buffer[offset + 17]) << 8
                count += 1
            }
            if count > 2 { return false }
        }
    }

    private static func terminated(_ path: ControlPath) -> [CChar] { path.bytes.map { CChar(bitPattern: $0) } + [0] }

    private static func real(_ bytes: [UInt8]) -> [UInt8]? {
        guard let result = realpath(bytes.map { CChar(bitPattern: $0) } + [0], nil) else { return nil }
        defer { free(result) }
        return Array(UnsafeRawBufferPointer(start: result, count: strlen(result)))
    }
}
