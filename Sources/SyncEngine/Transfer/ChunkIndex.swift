import UbiquityModel

/// Finds the chunks that cover a range of a file.
struct ChunkIndex: Sendable {
    struct Entry: Hashable, Sendable {
        var chunk: ChunkID
        var range: Range<Int64>
    }

    private(set) var entries: [Entry] = []
    private(set) var size: Int64 = 0

    init(_ manifest: Manifest) {
        entries.reserveCapacity(manifest.entries.count)
        for entry in manifest.entries {
            entries.append(Entry(chunk: entry.chunk, range: size..<size + Int64(entry.length)))
            size += Int64(entry.length)
        }
    }

    /// All chunks that touch one of `ranges` (ascending, disjoint), each once, in order.
    func entries(covering ranges: [Range<Int64>]) -> [Entry] {
        var result = [Entry]()
        for range in ranges where !range.isEmpty {
            var index = firstEntry(endingAfter: range.lowerBound)
            while index < entries.count, entries[index].range.lowerBound < range.upperBound {
                if result.last != entries[index] { result.append(entries[index]) }
                index += 1
            }
        }
        return result
    }

    private func firstEntry(endingAfter offset: Int64) -> Int {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].range.upperBound <= offset { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
