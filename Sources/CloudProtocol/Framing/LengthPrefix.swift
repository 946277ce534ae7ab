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

/// Takes length-prefixed messages out of a stream that arrives in arbitrary pieces. Each byte is copied once, to where its message is
/// handed out.
///
/// It holds what has arrived and was not taken: at most one message and the piece that completed it, if the caller takes all
/// whole messages after each `append`. A length above the limit is refused as soon as it is seen, before anything is allocated.
package struct LengthPrefixedDecoder: Sendable {
    /// Room that is made for a message because its length says so. More comes with its bytes.
    private static let trusted = 1 << 20

    private let limit: Int
    /// Of the message that is arriving: what has come of its length, and then of itself.
    private var prefix = 0
    private var prefixBytes = 0
    private var body: [UInt8] = []
    /// Messages that are whole, the next one first.
    private var whole: [[UInt8]] = []
    /// So many of them have been handed out: taking them out one by one would move the rest each time.
    private var handed = 0
    private var failure: WireError?

    /// - Parameter limit: of one message, in bytes.
    package init(limit: Int) { self.limit = limit }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes[...]
        while failure == nil, !rest.isEmpty {
            guard prefixBytes == LengthPrefix.bytes else {
                prefix = prefix << 8 | Int(rest.removeFirst())
                prefixBytes += 1
                if prefixBytes == LengthPrefix.bytes { begin() }
                continue
            }
            let part = rest.prefix(prefix - body.count)
            rest = rest.dropFirst(part.count)
            body.append(contentsOf: part)
            if body.count == prefix { end() }
        }
    }

    package mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }
    package mutating func append(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { append($0) } }

    private mutating func begin() {
        guard prefix <= limit else {
            failure = .tooLong("a message", bytes: prefix, limit: limit)
            return
        }
        body.reserveCapacity(min(prefix, Self.trusted))
        if prefix == 0 { end() }
    }

    private mutating func end() {
        whole.append(body)
        body = []
        (prefix, prefixBytes) = (0, 0)
    }

    /// The next whole message, `nil` if it has not arrived yet.
    package mutating func next() throws(WireError) -> [UInt8]? {
        if handed < whole.count {
            let message = whole[handed]
            whole[handed] = []
            handed += 1
            if handed == whole.count {
                whole.removeAll(keepingCapacity: true)
                handed = 0
            }
            return message
        }
        if let failure { throw failure }
        return nil
    }

    /// What it holds in memory of bytes that are not taken.
    package var heldBytes: Int { whole.reduce(body.count) { $0 + $1.count } }

    /// The stream has ended: that is an error within a message.
    package func finish() throws(WireError) {
        guard prefixBytes == 0, whole.isEmpty else { throw .truncated }
    }
}
