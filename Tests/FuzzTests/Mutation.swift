/// Spoils encodings as disks, networks and people who mean harm do.
struct Mutation {
    /// What stands for a length, a count or a size where it does the most harm, as a varint and in fixed widths.
    private static let extremes: [[UInt8]] = [
        [0xFF, 0xFF, 0xFF, 0xFF, 0x0F], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
        [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
        [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
        [0xFF, 0xFF, 0xFF, 0xFF], [0x7F, 0xFF, 0xFF, 0xFF], [0x80, 0, 0, 0], [0, 0, 0, 0],
        [0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0x80, 0, 0, 0, 0, 0, 0, 0],
        [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
    ]
    /// Longer inputs only take more time.
    static let longest = 1 << 16

    /// Pieces that mean something to the decoder.
    let words: [[UInt8]]

    init(words: [String] = []) { self.words = words.map { Array($0.utf8) } }

    /// One sample, or two of them, changed in up to eight ways; seldom as it is, and seldom anything at all.
    func input(
        _ arbitrary: inout Arbitrary,
        sample: (inout Arbitrary) async throws -> [UInt8]
    ) async throws -> [UInt8] {
        if arbitrary.chance(50) { return arbitrary.bytes(arbitrary.below(200)) }
        var bytes = try await sample(&arbitrary)
        if arbitrary.chance(20) { return bytes }
        if arbitrary.chance(5) {
            let other = try await sample(&arbitrary)
            bytes = Array(
                bytes.prefix(arbitrary.below(bytes.count + 1)) + other.dropFirst(arbitrary.below(other.count + 1))
            )
        }
        for _ in 0...arbitrary.below(arbitrary.chance(3) ? 8 : 2) { change(&bytes, &arbitrary) }
        return Array(bytes.prefix(Self.longest))
    }

    private func change(_ bytes: inout [UInt8], _ arbitrary: inout Arbitrary) {
        let place = arbitrary.below(bytes.count + 1)
        let end = min(bytes.count, place + 1 + arbitrary.below(arbitrary.chance(2) ? 4 : 64))
        switch arbitrary.below(10) {
        case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8(arbitrary.below(8))
        case 1 where place < bytes.count: bytes[place] = arbitrary.pick([0, 1, 0x7F, 0x80, 0xFF, 0x2F, 0x2E, 0x0A])
        case 2: bytes.removeSubrange(place..<bytes.count)
        case 3: bytes.removeSubrange(place..<end)
        case 4: bytes.insert(contentsOf: arbitrary.bytes(1 + arbitrary.below(8)), at: place)
        case 5: bytes.insert(contentsOf: bytes[place..<end], at: place)
        case 6:
            // The same over and over: repeated fields, deep nesting, long lists.
            let piece = Array(bytes[place..<end])
            let count = 1 << arbitrary.below(10)
            guard piece.count * count + bytes.count <= Self.longest else { return }
            bytes.insert(contentsOf: repeatElement(piece, count: count).joined(), at: place)
        case 7: bytes.insert(contentsOf: arbitrary.pick(words.isEmpty ? Self.extremes : words), at: place)
        case 8: bytes.replaceSubrange(place..<min(bytes.count, end), with: arbitrary.pick(Self.extremes))
        default:
            let extreme = arbitrary.pick(words.isEmpty ? Self.extremes : words)
            bytes.replaceSubrange(place..<min(bytes.count, place + extreme.count), with: extreme)
        }
    }
}
