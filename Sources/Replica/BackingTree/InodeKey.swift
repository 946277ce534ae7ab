internal import CLinux
package import SystemPackage
package import UbiquityModel

extension InodeKey {
    /// The inode behind a descriptor, also an `O_PATH` one.
    package init(descriptor: Int32) throws(Errno) { try self.init(in: descriptor, name: "") }

    /// The inode of a name in a folder, never following a link.
    package init(in directory: Int32, name: UnsafePointer<CChar>) throws(Errno) {
        var type: Int32 = 0
        var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
        let length = withUnsafeMutableBytes(of: &words) { room in
            clinux_handle_at(directory, name, &type, room.baseAddress?.assumingMemoryBound(to: UInt8.self))
        }
        if length >= 0 {
            self.init(tag: UInt64(UInt32(bitPattern: type)) << 8 | UInt64(length), words: words)
        } else {
            switch Errno(rawValue: -length) {
            // No handles here, too long a handle, or forbidden (some sandboxes).
            case .notSupported, .overflow, .noFunction, .notPermitted:
                try self.init(withoutHandleIn: directory, name: name)
            case let error: throw error
            }
        }
    }

    private init(withoutHandleIn directory: Int32, name: UnsafePointer<CChar>) throws(Errno) {
        var status = clinux_status()
        if name.pointee == 0 {
            try checked(clinux_status_of(directory, &status))
        } else {
            try checked(clinux_status_at(directory, name, &status))
        }
        var born: (seconds: Int64, nanoseconds: Int64) = (0, 0)
        // A filesystem without birth times leaves zero: the number alone must do.
        _ = clinux_birth_at(directory, name, &born.seconds, &born.nanoseconds)
        let birth = UInt64(bitPattern: born.seconds &* 1_000_000_000 &+ born.nanoseconds)
        self.init(tag: Self.withoutHandle, words: (status.device, status.inode, birth))
    }
}
