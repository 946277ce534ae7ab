import SystemPackage

/// Many contents as one, in which each has its place behind the one before: so one request brings all of them.
struct JoinedContents<Content: ContentDestination>: ContentDestination {
    private let contents: [Content]
    private let starts: [Int64]
    /// What is to be fetched of all of them.
    let entries: [ChunkIndex.Entry]
    /// In bytes, of all of them together.
    let size: Int64
    /// Bytes of one have come.
    private let written: @Sendable (Content) -> Void

    /// - Parameter parts: each with the chunks that it lacks, and its whole size in bytes.
    init(
        _ parts: [(content: Content, lacking: [ChunkIndex.Entry], size: Int64)],
        written: @escaping @Sendable (Content) -> Void = { _ in }
    ) {
        var (entries, starts, size) = ([ChunkIndex.Entry](), [Int64](), Int64(0))
        for part in parts {
            starts.append(size)
            for entry in part.lacking {
                let range = size + entry.range.lowerBound..<size + entry.range.upperBound
                entries.append(ChunkIndex.Entry(chunk: entry.chunk, range: range))
            }
            size += part.size
        }
        contents = parts.map(\.content)
        (self.entries, self.starts, self.size, self.written) = (entries, starts, size, written)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) {
        var (low, high) = (0, starts.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if starts[middle] <= offset { low = middle } else { high = middle }
        }
        try contents[low].write(bytes, at: offset - starts[low])
        written(contents[low])
    }
}
