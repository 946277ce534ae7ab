/// Which inode: its file handle (inode number and generation), so that a number used again is another key.
///
/// Where the filesystem gives no handle, or one of more than 24 bytes: device, inode number and birth time.
package struct InodeKey: Hashable, Sendable, Comparable {
    /// The handle's type and length, or `Self.withoutHandle`.
    package let tag: UInt64
    package let words: (UInt64, UInt64, UInt64)

    package static let withoutHandle = UInt64.max

    package init(tag: UInt64, words: (UInt64, UInt64, UInt64)) {
        self.tag = tag
        self.words = words
    }

    package static func == (left: Self, right: Self) -> Bool { left.tag == right.tag && left.words == right.words }

    /// An order that is the same in every run, and means nothing.
    package static func < (left: Self, right: Self) -> Bool {
        (left.tag, left.words.0, left.words.1, left.words.2) < (right.tag, right.words.0, right.words.1, right.words.2)
    }

    package func hash(into hasher: inout Hasher) {
        // Enough to tell inodes apart: number and generation, or device and number. The rest is compared.
        hasher.combine(words.0)
        hasher.combine(words.1)
    }
}

extension InodeKey {
    /// For the state database: the tag's eight bytes, then the words' without the zeros at the end.
    package var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 32) { room, count in
            write(to: UnsafeMutableRawBufferPointer(room))
            count = 32
            while count > 8, room[count - 1] == 0 { count -= 1 }
        }
    }

    /// The same with all the zeros: 32 bytes, for which there must be room.
    package func write(to room: UnsafeMutableRawBufferPointer) {
        room.storeBytes(of: tag.littleEndian, toByteOffset: 0, as: UInt64.self)
        room.storeBytes(of: words.0.littleEndian, toByteOffset: 8, as: UInt64.self)
        room.storeBytes(of: words.1.littleEndian, toByteOffset: 16, as: UInt64.self)
        room.storeBytes(of: words.2.littleEndian, toByteOffset: 24, as: UInt64.self)
    }

    package init?(bytes: some Collection<UInt8>) {
        guard let key = withContiguousBytes(bytes, Self.init(bytes:)) else { return nil }
        self = key
    }

    // Without anything generic (see `Name`).

    package init?(bytes: [UInt8]) {
        guard let key = bytes.withUnsafeBytes(Self.init(bytes:)) else { return nil }
        self = key
    }

    package init?(bytes: UnsafeRawBufferPointer) {
        guard (8...32).contains(bytes.count) else { return nil }
        var all: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        withUnsafeMutableBytes(of: &all) { room in room.copyMemory(from: bytes) }
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
