/// Messages one after the other in a body, each preceded by its length as a big-endian UInt32: the feed, uploads and fetches.
package enum LengthPrefix {
    /// Of the length itself.
    package static let bytes = 4
    /// The longest message of a body of frames: a chunk and its name, with room to spare.
    package static let longestFrame = 512 * 1024
    /// The longest page of the feed.
    package static let longestPage = 64 * 1024 * 1024

    /// - Precondition: `message` is shorter than 4 GiB.
    package static func prefix(length: Int) -> [UInt8] {
        precondition(length <= Int(UInt32.max), "a message is always shorter than 4 GiB")
        let length = UInt32(length)
        return stride(from: UInt32(24), through: 0, by: -8).map { UInt8(truncatingIfNeeded: length >> $0) }
    }

    /// The message with its length before it.
    package static func encode(_ message: [UInt8]) -> [UInt8] {
        var result = [UInt8]()
        result.reserveCapacity(bytes + message.count)
        result.append(contentsOf: prefix(length: message.count))
        result.append(contentsOf: message)
        return result
    }
}

/// Takes length-prefixed messages out of a stream that arrives in arbitrary pieces.
///
/// It holds what has arrived and was not taken: at most one message and the piece that completed it, if the caller takes all
/// whole messages after each `append`. A length above the limit is refused as soon as it is seen, before anything is allocated.
package struct LengthPrefixedDecoder: Sendable {
    private let limit: Int
    private var buffer = [UInt8]()
    /// Index in `buffer` of the first byte that was not taken yet.
    private var start = 0

    /// - Parameter limit: of one message, in bytes.
    package init(limit: Int) { self.limit = limit }

    package mutating func append(_ bytes: some Collection<UInt8>) {
        if start == buffer.count {
            buffer.removeAll(keepingCapacity: true)
            start = 0
        } else if start > buffer.count / 2 {
            buffer.removeFirst(start)
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// The next whole message, `nil` if it has not arrived yet.
    package mutating func next() throws(WireError) -> [UInt8]? {
        guard buffer.count - start >= LengthPrefix.bytes else { return nil }
        let length = buffer[start..<start + LengthPrefix.bytes].reduce(0) { $0 << 8 | Int($1) }
        guard length <= limit else { throw .tooLong("a message", bytes: length, limit: limit) }
        let body = start + LengthPrefix.bytes
        guard buffer.count - body >= length else { return nil }
        start = body + length
        return Array(buffer[body..<start])
    }

    /// What it holds in memory of bytes that are not taken, or were taken a moment ago.
    package var heldBytes: Int { buffer.count }

    /// The stream has ended: that is an error within a message.
    package func finish() throws(WireError) {
        guard start == buffer.count else { throw .truncated }
    }
}
