import CFuse3
import CLinux
import Glibc
import SystemPackage

/// The folder that a container is mounted on.
struct MountPoint {
    /// Absolute, without links.
    let path: String

    /// Checks that a mount may be made there; takes away what a service that died left there.
    init(checking path: String, options: [String]) throws(MountError) {
        self.path = try Self.usable(path)
        let folder = Glibc.open(self.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw .refused("\(self.path): \(Errno(rawValue: errno))") }
        let descriptor = SharedDescriptor(folder)
        do throws(Errno) {
            guard try DirectoryEntries.isEmpty(descriptor.raw) else { throw .directoryNotEmpty }
        } catch .directoryNotEmpty {
            throw .notEmpty(self.path)
        } catch {
            throw .refused("\(self.path): \(error)")
        }
    }

    /// Checks all of it but whether the folder is empty.
    /// - Returns: the path, absolute and without links.
    static func usable(_ path: String) throws(MountError) -> String {
        guard Glibc.access("/dev/fuse", F_OK) == 0 else {
            throw .fuseMissing("/dev/fuse does not exist (the kernel's module fuse)")
        }
        if geteuid() != 0, helper == nil {
            throw .fuseMissing("fusermount3 is not installed (Debian's package fuse3)")
        }
        let absolute = try Self.absolute(path)
        if let source = Self.source(of: absolute) {
            throw .alreadyMounted(absolute, by: source)
        }
        var status = stat()
        guard stat(absolute, &status) == 0, status.st_mode & FileMode.typeMask == FileMode.folder else {
            throw .notADirectory(absolute)
        }
        return absolute
    }

    private static func absolute(_ path: String) throws(MountError) -> String {
        for _ in 0..<2 {
            if let real = realpath(path, nil) {
                defer { free(real) }
                let absolute = String(cString: real)
                // A dead mount's root may be answered from the kernel's cache: asking for its statistics is certain to reach the service.
                var status = statvfs()
                if statvfs(absolute, &status) == 0 || !isDead(errno) { return absolute }
            } else if !isDead(errno) {
                throw .notADirectory(path)
            }
            unmount(path, isLazy: true)
        }
        throw .refused("\(path) is a dead mount that cannot be taken away")
    }

    private static func isDead(_ error: Int32) -> Bool { error == ENOTCONN || error == ECONNABORTED }

    /// What is mounted there, as the kernel shows it; nil if nothing is.
    static func source(of path: String) -> String? {
        for line in (mountTable() ?? "").split(separator: "\n") {
            // "36 35 98:0 /root /point options - type source super-options", with an unknown number of fields before the dash.
            let fields = line.split(separator: " ")
            guard fields.count > 6, unescaped(fields[4]) == path, let dash = fields.firstIndex(of: "-") else {
                continue
            }
            return fields.count > dash + 2 ? unescaped(fields[dash + 2]) : ""
        }
        return nil
    }

    private static func mountTable() -> String? {
        let descriptor = Glibc.open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        let file = SharedDescriptor(descriptor)
        var bytes = [UInt8]()
        var part = [UInt8](repeating: 0, count: 16384)
        while true {
            let count = Glibc.read(file.raw, &part, part.count)
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += part[..<count]
        }
    }

    /// Blanks, tabs, newlines and backslashes are written as three octal digits.
    private static func unescaped(_ field: Substring) -> String {
        var bytes = [UInt8]()
        var rest = Array(field.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\\"), let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8) {
                bytes.append(code)
                rest = rest.dropFirst(3)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Unmounting

    /// Whether it succeeded.
    @discardableResult
    static func unmount(_ path: String, isLazy: Bool) -> Bool {
        if geteuid() == 0 {
            let flags = Int32(CLINUX_UMOUNT_NOFOLLOW) | (isLazy ? Int32(CLINUX_MNT_DETACH) : 0)
            return clinux_fuse_unmount(path, flags) == 0
        }
        guard let helper else { return false }
        return runQuietly(helper, [isLazy ? "-uzq" : "-uq", "--", path])
    }

    private static let helper: String? = {
        let folders = String(cString: getenv("PATH") ?? strdup("")).split(separator: ":").map(String.init)
        return (folders + ["/usr/bin", "/bin", "/usr/local/bin"]).map { $0 + "/fusermount3" }.first {
            Glibc.access($0, X_OK) == 0
        }
    }()

    private static func runQuietly(_ program: String, _ arguments: [String]) -> Bool {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process = pid_t()
        guard posix_spawn(&process, program, &actions, nil, &words, environ) == 0 else { return false }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 {
            if errno != EINTR { return false }
        }
        return status == 0
    }
}
