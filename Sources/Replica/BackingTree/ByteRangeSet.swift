/// Which bytes of a file are there: disjoint ranges in order, none empty, none touching the next.
package struct ByteRangeSet: Hashable, Sendable {
    package private(set) var ranges: [Range<Int64>] = []

    package init() {}

    package init(_ range: Range<Int64>) { insert(range) }

    /// Bytes in all ranges.
    package var count: Int64 { ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } }

    package mutating func insert(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        // Those that touch the new one are melted into it.
        let first = firstIndex { $0.upperBound >= range.lowerBound }
        let end = firstIndex { $0.lowerBound > range.upperBound }
        guard first < end else {
            ranges.insert(range, at: first)
            return
        }
        let lower = min(range.lowerBound, ranges[first].lowerBound)
        let upper = max(range.upperBound, ranges[end - 1].upperBound)
        ranges.replaceSubrange(first..<end, with: CollectionOfOne(lower..<upper))
    }

    package func contains(_ range: Range<Int64>) -> Bool {
        guard !range.isEmpty else { return true }
        let index = firstIndex { $0.upperBound > range.lowerBound }
        return index < ranges.count && ranges[index].lowerBound <= range.lowerBound
            && ranges[index].upperBound >= range.upperBound
    }

    /// The parts of `range` that are not there, in order.
    package func missing(in range: Range<Int64>) -> [Range<Int64>] {
        var result = [Range<Int64>]()
        var next = range.lowerBound
        var index = firstIndex { $0.upperBound > range.lowerBound }
        while index < ranges.count, ranges[index].lowerBound < range.upperBound {
            if next < ranges[index].lowerBound { result.append(next..<ranges[index].lowerBound) }
            next = ranges[index].upperBound
            index += 1
        }
        if next < range.upperBound { result.append(next..<range.upperBound) }
        return result
    }

    /// By bisection: the first range for which this is true, given that it is then true for all that follow.
    private func firstIndex(where isBeyond: (Range<Int64>) -> Bool) -> Int {
        var low = 0
        var high = ranges.count
        while low < high {
            let middle = (low + high) / 2
            if isBeyond(ranges[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

extension ByteRangeSet {
    /// For the state database: lower and upper bound of each, 8 bytes, big-endian.
    package var encoded: [UInt8] {
        var writer = ByteWriter()
        for range in ranges {
            writer.integer(range.lowerBound)
            writer.integer(range.upperBound)
        }
        return writer.result
    }

    /// `nil` for anything but what `encoded` gives.
    package init?(encoded: [UInt8]) {
        var reader = ByteReader(encoded)
        // None touches the one before: bytes that a damaged row only claims to be here would be read as zeros.
        var end: Int64 = -1
        while !reader.isAtEnd {
            guard let lower = reader.integer(Int64.self), let upper = reader.integer(Int64.self), end < lower,
                lower < upper
            else {
                return nil
            }
            ranges.append(lower..<upper)
            end = upper
        }
    }
}
