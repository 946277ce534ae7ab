/// A random 128-bit identifier made by a device (or the server), so that a repeated request can be recognised.
///
/// The generic parameter only keeps kinds of identifiers apart at compile time: an `ItemID` is never taken for a `RevisionID`.
///
/// Public, with what dictionaries of them ask: nothing of a `package` type is inlined in another target, nor is a special version made of
/// what is generic (Swift 6.3). The simulator takes a tenth longer then.
public struct Identifier<Kind>: Hashable, Sendable, Comparable {
    /// The first eight bytes.
    public let high: UInt64
    /// The last eight bytes.
    public let low: UInt64

    /// An identifier that is known already.
    @inlinable
    public init(high: UInt64, low: UInt64) {
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
    package init?(bytes: some Collection<UInt8>) {
        guard let id = withContiguousBytes(bytes, Self.init(bytes:)) else { return nil }
        self = id
    }

    // Without anything generic (see `Name`).

    package init?(bytes: [UInt8]) {
        guard let id = bytes.withUnsafeBytes(Self.init(bytes:)) else { return nil }
        self = id
    }

    package init?(bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 16 else { return nil }
        high = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
        low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    package var bytes: [UInt8] { withBytes { Array($0) } }

    /// The 16 bytes, without an array of them.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian), body)
    }

    /// In the order of their bytes.
    @inlinable
    public static func < (left: Self, right: Self) -> Bool { (left.high, left.low) < (right.high, right.low) }

    // Written out, so that other modules' dictionaries need not ask which kind of identifier it is.

    /// Whether all bytes are the same.
    @inlinable
    public static func == (left: Self, right: Self) -> Bool { left.high == right.high && left.low == right.low }

    /// All of its bytes.
    @inlinable
    public func hash(into hasher: inout Hasher) {
        hasher.combine(high)
        hasher.combine(low)
    }
}

extension Identifier: CustomStringConvertible, LosslessStringConvertible {
    /// 32 lowercase hexadecimal digits.
    public var description: String { Hexadecimal.encode(bytes) }

    /// Of 32 lowercase hexadecimal digits; `nil` for anything else.
    public init?(_ description: String) {
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
