internal import CLinux
internal import Glibc
package import SystemPackage
package import UbiquityModel

/// The permission bits of backing inodes.
///
/// The owner of a 0444 file may neither set its attributes nor fill it. So, unless the service may do everything
/// (root), a file keeps u+rw and a folder u+rwx on disk; a true mode that lacks these lies in an attribute, and the
/// driver reports and enforces it.
package enum InodeMode {
    private static let isPrivileged = geteuid() == 0

    /// What the inode gets for a true mode.
    package static func backing(_ mode: UInt16, _ kind: LocalKind, privileged: Bool? = nil) -> UInt16 {
        if privileged ?? isPrivileged { return mode }
        switch kind {
        case .file: return mode | 0o600
        case .folder, .package: return mode | 0o700
        case .symlink, .other: return mode
        }
    }

    /// Sets the true mode (up to 0o7777).
    /// - Parameter privileged: whether the service passes permission checks; by default, whether it runs as root.
    package static func set(
        _ descriptor: Int32,
        _ mode: UInt16,
        _ kind: LocalKind,
        privileged: Bool? = nil
    ) throws(Errno) {
        let backing = backing(mode, kind, privileged: privileged)
        if backing == mode {
            try checked(clinux_chmod(descriptor, UInt32(mode)))
            // Fifos, sockets and devices never hide their mode, and have no `user.` attributes: removing one is refused with EPERM.
            guard kind == .file || kind == .folder else { return }
            // Last: until then the old true mode holds, whole.
            try ExtendedAttributes.remove(descriptor, ExtendedAttributes.mode)
        } else {
            try ExtendedAttributes.set(descriptor, ExtendedAttributes.mode, [UInt8(mode >> 8), UInt8(mode & 0xFF)])
            try checked(clinux_chmod(descriptor, UInt32(backing)))
        }
    }

    /// The true mode (up to 0o7777) of an inode whose `st_mode` is known.
    package static func get(_ descriptor: Int32, status mode: UInt32) throws(Errno) -> UInt16 {
        let visible = UInt16(mode & 0o7777)
        guard let bytes = try ExtendedAttributes.get(descriptor, ExtendedAttributes.mode), bytes.count == 2 else {
            return visible
        }
        // setuid, setgid and sticky are the inode's own: the disk ends them when it must.
        return visible & 0o7000 | (UInt16(bytes[0]) << 8 | UInt16(bytes[1])) & 0o777
    }
}
