import Replica
import Testing

@Suite struct ByteRangeSetTests {
    /// Against an array of booleans.
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `agrees with a plain map of bytes`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let size = 200
        var set = ByteRangeSet()
        var map = [Bool](repeating: false, count: size)
        func randomRange() -> Range<Int> {
            let lower = Int.random(in: 0...size, using: &generator)
            return lower..<Int.random(in: lower...min(size, lower + 30), using: &generator)
        }
        for _ in 0..<60 {
            let range = randomRange()
            set.insert(Int64(range.lowerBound)..<Int64(range.upperBound))
            for index in range { map[index] = true }
            let asked = randomRange()
            let wide = Int64(asked.lowerBound)..<Int64(asked.upperBound)
            #expect(set.contains(wide) == map[asked].allSatisfy { $0 })
            let missing = set.missing(in: wide).flatMap { Array($0) }
            #expect(missing == asked.filter { !map[$0] }.map(Int64.init))
            #expect(set.count == Int64(map.count { $0 }))
            #expect(zip(set.ranges, set.ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
        }
        #expect(ByteRangeSet(encoded: set.encoded) == set)
    }

    /// Two ranges of which the second begins before the first ends, or where it ends: no `encoded` gives such.
    @Test(arguments: [0, 4, 5])
    func `ranges that are not in order are damaged`(second: UInt8) {
        let zeros = [UInt8](repeating: 0, count: 7)
        let bytes = zeros + [0] + zeros + [5] + zeros + [second] + zeros + [9]
        #expect(ByteRangeSet(encoded: bytes) == nil)
        #expect(ByteRangeSet(encoded: zeros + [0] + zeros + [5] + zeros + [6] + zeros + [9])?.count == 8)
    }

    @Test(arguments: [[0, 0, 0], [UInt8](repeating: 0, count: 16), [UInt8](repeating: 255, count: 16)])
    func `damaged ranges are refused`(bytes: [UInt8]) { #expect(ByteRangeSet(encoded: bytes) == nil) }
}
