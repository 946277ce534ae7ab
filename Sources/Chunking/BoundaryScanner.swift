internal import UbiquityModel

/// Finds the ends of chunks by FastCDC (a rolling gear hash, normalised chunking), in a content that comes in pieces.
///
/// The ends depend on the bytes since the last end only, not on how the content is cut into pieces. Least, normal and
/// most length, the gear table and the two thresholds are fixed by `FormatVersion.chunks`.
struct BoundaryScanner {
    static let leastLength = 32 * 1024
    static let normalLength = 128 * 1024
    static let mostLength = Manifest.maximumChunkSize

    /// Before the normal length an end is four times rarer than once in 2^17 bytes, after it four times as frequent:
    /// lengths gather around the normal one. The highest bits of the gear hash depend on the most bytes (64), so these
    /// are looked at.
    private static let shiftBeforeNormal: UInt64 = 64 - 19
    private static let shiftAfterNormal: UInt64 = 64 - 15

    /// Bytes of the current chunk seen so far.
    private var length = 0
    private var hash: UInt64 = 0

    /// How many of these bytes belong to the current chunk if it ends here; `nil` if it goes on after them.
    mutating func scan(_ bytes: UnsafePointer<UInt8>, count: Int) -> Int? {
        // No chunk ends before the least length: those bytes are not even looked at.
        let start = min(max(Self.leastLength - length, 0), count)
        let normal = min(max(Self.normalLength - length, start), count)
        let most = min(Self.mostLength - length, count)
        if let end = roll(bytes, start..<normal, shift: Self.shiftBeforeNormal)
            ?? roll(bytes, normal..<most, shift: Self.shiftAfterNormal)
            ?? (length + most == Self.mostLength ? most : nil)
        {
            length = 0
            hash = 0
            return end
        }
        length += count
        return nil
    }

    /// The second of two places at which is looked at once lies so far behind the first.
    private static let stride = 1024
    /// The hash depends on so many bytes before its place.
    private static let window = 64

    private mutating func roll(_ bytes: UnsafePointer<UInt8>, _ range: Range<Int>, shift: UInt64) -> Int? {
        let gear = GearTable.words
        let limit = UInt64(1) &<< shift
        var index = range.lowerBound
        // Each hash waits for the one before it, and meanwhile that of another place is computed: 0.47 s a GiB instead of 0.69.
        while range.upperBound &- index >= 2 &* Self.stride {
            let (first, second) = (bytes + index, bytes + index + Self.stride)
            var hash = self.hash
            var other: UInt64 = 0
            var place = -Self.window
            while place < 0 {
                other = (other &<< 1) &+ gear[Int(second[place])]
                place &+= 1
            }
            while place < Self.stride {
                hash = (hash &<< 1) &+ gear[Int(first[place])]
                other = (other &<< 1) &+ gear[Int(second[place])]
                if hash < limit || other < limit { break }
                hash = (hash &<< 1) &+ gear[Int(first[place &+ 1])]
                other = (other &<< 1) &+ gear[Int(second[place &+ 1])]
                if hash < limit || other < limit { break }
                place &+= 2
            }
            // Seldom: once more, one after the other, for which of them it is.
            if place < Self.stride { break }
            self.hash = other
            index &+= 2 &* Self.stride
        }
        var hash = self.hash
        while index < range.upperBound {
            hash = (hash &<< 1) &+ gear[Int(bytes[index])]
            index &+= 1
            if hash < limit { return index }
        }
        self.hash = hash
        return nil
    }
}

/// 256 random words, fixed by the format version: SplitMix64 from a fixed seed.
enum GearTable {
    /// Lives as long as the process: allocated once and never freed, so that the scanning loop reads it without any
    /// check.
    nonisolated(unsafe) static let words: UnsafePointer<UInt64> = {
        let table = UnsafeMutablePointer<UInt64>.allocate(capacity: 256)
        var state: UInt64 = 0x7562_6971_7569_7479
        for index in 0..<256 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var word = state
            word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
            word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
            (table + index).initialize(to: word ^ (word >> 31))
        }
        return UnsafePointer(table)
    }()
}
