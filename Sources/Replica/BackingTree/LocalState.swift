internal import CLinux
internal import Glibc
package import SystemPackage
package import UbiquityModel

extension LocalKind {
    package init(mode: UInt32) {
        switch mode & UInt32(S_IFMT) {
        case UInt32(S_IFREG): self = .file
        case UInt32(S_IFDIR): self = .folder
        case UInt32(S_IFLNK): self = .symlink
        default: self = .other
        }
    }
}

/// `fstat`, as a value.
func status(of descriptor: Int32) throws(Errno) -> clinux_status {
    var status = clinux_status()
    try checked(clinux_status_of(descriptor, &status))
    return status
}

/// Sets a modification time, of any kind of inode, through any descriptor.
package func setModified(_ descriptor: Int32, _ modified: Timestamp) throws(Errno) {
    let parts = modified.parts
    try checked(clinux_set_modified(descriptor, parts.seconds, parts.nanoseconds))
}
