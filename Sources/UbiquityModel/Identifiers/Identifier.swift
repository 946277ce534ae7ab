/// A random 128-bit identifier made by a device (or the server), so that a repeated request can be recognised.
///
/// The generic parameter only keeps kinds of identifiers apart at compile time: an `ItemID` is never taken for a `RevisionID`.
package struct Identifier<Kind>: Hashable, Sendable, Comparable {
    package let high: UInt64
    package let low: UInt64

    @inlinable
    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Makes a fresh identifier. Pure code never calls this with the system's generator: randomness is an argument there.
    package init(using generator: inout some RandomNumberGenerator) {
        self.init(high: generator.next(), low: generator.next())
    }

    /// A fresh identifier from the system's generator, for code at the edge.
    package static func random() -> Self {
        var generator = SystemRandomNumberGenerator()
        return Self(using: &generator)
    }

    /// Makes a fresh identifier that begins with the time: 48 bits of milliseconds, then 80 random ones (as RFC 9562 has it, version 7).
    /// Those made one after another lie side by side in an index, which makes tables of millions of them cheaper to write.
    package init(at time: Timestamp, using generator: inout some RandomNumberGenerator) {
        let milliseconds = UInt64(clamping: time.nanoseconds / 1_000_000)
        self.init(high: milliseconds << 16 | generator.next() & 0xFFFF, low: generator.next())
    }

    /// A fresh identifier of an item, a revision or an operation, from the system's generator, for code at the edge.
    package static func made(at time: Timestamp) -> Self {
        var generator = SystemRandomNumberGenerator()
        return Self(at: time, using: &generator)
    }

    /// The 16 bytes, big-endian; `nil` if there are not exactly 16.
    @inlinable
    package init?(bytes: some Collection<UInt8>) {
        let words = withContiguousBytes(bytes) { bytes -> (UInt64, UInt64)? in
            guard bytes.count == 16 else { return nil }
            return (
                UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
        guard let words else { return nil }
        self.init(high: words.0, low: words.1)
    }

    package var bytes: [UInt8] { withBytes { Array($0) } }

    /// The 16 bytes, without an array of them.
    @inlinable
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian), body)
    }

    package static func < (left: Self, right: Self) -> Bool { (left.high, left.low) < (right.high, right.low) }

    // Written out, so that other modules' dictionaries need not ask which kind of identifier it is.

    @inlinable
    package static func == (left: Self, right: Self) -> Bool { left.high == right.high && left.low == right.low }

    @inlinable
    package func hash(into hasher: inout Hasher) {
        hasher.combine(high)
        hasher.combine(low)
    }
}

extension Identifier: CustomStringConvertible, LosslessStringConvertible {
    /// 32 lowercase hexadecimal digits.
    package var description: String { Hexadecimal.encode(bytes) }

    package init?(_ description: String) {
        guard let bytes = Hexadecimal.decode(description) else { return nil }
        self.init(bytes: bytes)
    }
}

package enum ItemKindTag {}
package enum RevisionKindTag {}
package enum DeviceKindTag {}
package enum OperationKindTag {}

/// A file, folder or symbolic link, for as long as it exists on any device, through all moves.
package typealias ItemID = Identifier<ItemKindTag>
/// One content of an item. Made by the device that wrote it.
package typealias RevisionID = Identifier<RevisionKindTag>
/// A device that has signed in.
package typealias DeviceID = Identifier<DeviceKindTag>
/// One operation of a batch; committing a known one returns the first answer.
package typealias OperationID = Identifier<OperationKindTag>

extension Identifier where Kind == ItemKindTag {
    /// The container's own root folder, which exists from the beginning, is never sent and never deleted.
    package static var root: ItemID { ItemID(high: 0, low: 0) }
}
