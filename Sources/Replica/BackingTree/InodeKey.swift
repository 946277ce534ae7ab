internal import CLinux
package import SystemPackage

/// Which inode: its file handle (inode number and generation), so that a number used again is another key.
///
/// Where the filesystem gives no handle, or one of more than 24 bytes: device, inode number and birth time.
package struct InodeKey: Hashable, Sendable {
    /// The handle's type and length, or `Self.withoutHandle`.
    package let tag: UInt64
    package let words: (UInt64, UInt64, UInt64)

    private static let withoutHandle = UInt64.max

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

    private init(tag: UInt64, words: (UInt64, UInt64, UInt64)) {
        self.tag = tag
        self.words = words
    }

    package static func == (left: Self, right: Self) -> Bool { left.tag == right.tag && left.words == right.words }

    package func hash(into hasher: inout Hasher) {
        // Enough to tell inodes apart: number and generation, or device and number. The rest is compared.
        hasher.combine(words.0)
        hasher.combine(words.1)
    }
}

extension InodeKey {
    /// For the state database: the tag's eight bytes, then the words' without the zeros at the end.
    package var bytes: [UInt8] {
        var result = [UInt8]()
        result.reserveCapacity(32)
        for word in [tag, words.0, words.1, words.2] {
            withUnsafeBytes(of: word.littleEndian) { result.append(contentsOf: $0) }
        }
        while result.count > 8, result.last == 0 { result.removeLast() }
        return result
    }

    package init?(bytes: some Collection<UInt8>) {
        guard (8...32).contains(bytes.count) else { return nil }
        var all: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        withUnsafeMutableBytes(of: &all) { room in
            for (index, byte) in bytes.enumerated() { room[index] = byte }
        }
        self.init(
            tag: UInt64(littleEndian: all.0),
            words: (UInt64(littleEndian: all.1), UInt64(littleEndian: all.2), UInt64(littleEndian: all.3))
        )
    }
}

extension InodeKey: CustomStringConvertible {
    package var description: String {
        "inode \(String(tag, radix: 16)):\(String(words.0, radix: 16)):\(String(words.1, radix: 16))"
    }
}
