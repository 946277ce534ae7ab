internal import FoundationEssentials
package import UbiquityModel

extension WireChunkFrame {
    /// One chunk as it is stored and sent.
    package init(chunk: ChunkID, length: UInt32, isCompressed: Bool, data: ArraySlice<UInt8>) {
        self.init()
        self.chunk = chunk.wire
        self.length = length
        compressed = isCompressed
        self.data = Data(data)
    }

    /// The parts of a frame, checked for what can be known without decompressing: the content is verified against the chunk's
    /// name by `ChunkFrame.decoded(key:)`.
    package func decoded() throws(WireError) -> Parts {
        try Self.checked(try ChunkID(wire: chunk, "a chunk's id"), length, compressed, [UInt8](data)[...])
    }

    package typealias Parts = (chunk: ChunkID, length: UInt32, isCompressed: Bool, data: ArraySlice<UInt8>)

    private static func checked(
        _ chunk: ChunkID,
        _ length: UInt32,
        _ isCompressed: Bool,
        _ data: ArraySlice<UInt8>
    ) throws(WireError) -> Parts {
        guard length > 0, length <= Manifest.maximumChunkSize else {
            throw .outOfRange("the length of a chunk", value: Int64(length))
        }
        guard !data.isEmpty else { throw .missing("the data of a chunk") }
        // Compression is kept only where it does not make a chunk longer.
        let fits = isCompressed ? data.count <= Int(length) : data.count == Int(length)
        guard fits else { throw .wrongLength("the data of a chunk of \(length)", bytes: data.count) }
        return (chunk, length, isCompressed, data)
    }

    // MARK: Without generated code, through which the data would be copied three times

    private enum Tag {
        static let chunk: UInt64 = 1 << 3 | 2
        static let length: UInt64 = 2 << 3 | 0
        static let compressed: UInt64 = 3 << 3 | 0
        static let data: UInt64 = 4 << 3 | 2
    }

    /// `decoded()` of the message with these bytes.
    package static func parts(of body: [UInt8]) throws(WireError) -> Parts { try parts(of: body[...]) }

    /// The same of a message that stands in another one.
    package static func parts(of body: ArraySlice<UInt8>) throws(WireError) -> Parts {
        // The data stays where it has arrived.
        let plain = body.withUnsafeBytes { bytes -> Parts? in
            var reader = WireReader(bytes)
            var chunk: ChunkID?
            var length: UInt64 = 0
            var isCompressed: UInt64 = 0
            var data: Range<Int>?
            while !reader.isAtEnd {
                switch reader.tag() {
                case Tag.chunk:
                    guard let value = reader.field().flatMap({ ChunkID(bytes: $0) }) else { return nil }
                    chunk = value
                case Tag.length:
                    guard let value = reader.varint() else { return nil }
                    length = value
                case Tag.compressed:
                    guard let value = reader.varint() else { return nil }
                    isCompressed = value
                case Tag.data:
                    guard let value = reader.field() else { return nil }
                    let end = body.startIndex + reader.offset
                    data = end - value.count..<end
                default: return nil
                }
            }
            guard let chunk, let data, let length = UInt32(exactly: length) else { return nil }
            return (chunk, length, isCompressed != 0, body[data])
        }
        // What is not as expected goes the general way, which says why.
        guard let plain else { return try WireChunkFrame(body: Array(body)).decoded() }
        return try checked(plain.chunk, plain.length, plain.isCompressed, plain.data)
    }

    /// What comes before the data in the message, with the message's length before it as `LengthPrefix` has it.
    package static func head(chunk: ChunkID, length: UInt32, isCompressed: Bool, dataCount: Int) -> [UInt8] {
        let head = bareHead(chunk, length, isCompressed, dataCount)
        return LengthPrefix.prefix(length: head.count + dataCount) + head
    }

    /// The length of the message as a varint, and its bytes.
    static func append(_ frame: Parts, to bytes: inout [UInt8]) {
        let head = bareHead(frame.chunk, frame.length, frame.isCompressed, frame.data.count)
        bytes.appendVarint(UInt64(head.count + frame.data.count))
        bytes += head
        bytes += frame.data
    }

    private static func bareHead(_ chunk: ChunkID, _ length: UInt32, _ isCompressed: Bool, _ dataCount: Int) -> [UInt8]
    {
        var head: [UInt8] = []
        // What it has at the most.
        head.reserveCapacity(48)
        head.appendVarint(Tag.chunk)
        head.append(32)
        chunk.withBytes { head.append(contentsOf: $0) }
        head.appendField(Tag.length, UInt64(length))
        head.appendField(Tag.compressed, isCompressed ? 1 : 0)
        if dataCount > 0 {
            head.appendVarint(Tag.data)
            head.appendVarint(UInt64(dataCount))
        }
        return head
    }
}
