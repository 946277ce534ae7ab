/// The chunks that a content is made of, in order.
package struct Manifest: Hashable, Sendable {
    package struct Entry: Hashable, Sendable {
        package var chunk: ChunkID
        /// Length of the plain chunk in bytes, 1 to `maximumChunkSize`.
        package var length: UInt32

        package init(chunk: ChunkID, length: UInt32) {
            self.chunk = chunk
            self.length = length
        }
    }

    /// No chunk is ever longer, in bytes (architecture section 6; fixed by the format version).
    package static let maximumChunkSize = 256 * 1024

    package var entries: [Entry]

    package init(entries: [Entry] = []) { self.entries = entries }

    /// Sum of the chunks' lengths in bytes.
    package var size: Int64 { entries.reduce(0) { $0 + Int64($1.length) } }

    /// 36 bytes an entry: the id, then the length, big-endian.
    package var encoded: [UInt8] {
        var result = [UInt8]()
        result.reserveCapacity(entries.count * 36)
        appendEncoded(to: &result)
        return result
    }

    package func appendEncoded(to bytes: inout [UInt8]) {
        for entry in entries {
            entry.chunk.withBytes { bytes.append(contentsOf: $0) }
            withUnsafeBytes(of: entry.length.bigEndian) { bytes.append(contentsOf: $0) }
        }
    }

    /// `nil` for anything but whole entries with lengths in 1...maximumChunkSize.
    package init?(encoded: some RandomAccessCollection<UInt8>) {
        let entries = withContiguousBytes(encoded) { encoded -> [Entry]? in
            guard encoded.count % 36 == 0 else { return nil }
            var entries = [Entry]()
            entries.reserveCapacity(encoded.count / 36)
            for start in stride(from: 0, to: encoded.count, by: 36) {
                let length = UInt32(bigEndian: encoded.loadUnaligned(fromByteOffset: start + 32, as: UInt32.self))
                guard length > 0, length <= Self.maximumChunkSize,
                    let chunk = ChunkID(bytes: UnsafeRawBufferPointer(rebasing: encoded[start..<(start + 32)]))
                else { return nil }
                entries.append(Entry(chunk: chunk, length: length))
            }
            return entries
        }
        guard let entries else { return nil }
        self.entries = entries
    }
}
