internal import Chunking
internal import CloudProtocol
internal import NIOCore

/// The body of an upload: frames with their lengths, encoded one after the other as the connection takes them.
struct FrameBody: Sequence, IteratorProtocol, Sendable {
    /// Small frames go out together.
    private static let pieceBytes = 128 * 1024

    /// Of all of it.
    let bytes: Int64
    private var rest: ArraySlice<(head: [UInt8], data: ArraySlice<UInt8>)>

    init(frames: [ChunkFrame]) {
        let parts = frames.map { frame -> (head: [UInt8], data: ArraySlice<UInt8>) in
            let head = WireChunkFrame.head(
                chunk: frame.chunk,
                length: frame.length,
                isCompressed: frame.isCompressed,
                dataCount: frame.data.count
            )
            return (head, frame.data)
        }
        bytes = parts.reduce(0) { $0 + Int64($1.head.count + $1.data.count) }
        rest = parts[...]
    }

    mutating func next() -> ByteBuffer? {
        guard !rest.isEmpty else { return nil }
        var buffer = ByteBuffer()
        while buffer.readableBytes < Self.pieceBytes, let (head, data) = rest.popFirst() {
            buffer.reserveCapacity(minimumWritableBytes: head.count + data.count)
            buffer.writeBytes(head)
            buffer.writeBytes(data)
        }
        return buffer
    }
}

extension ChunkFrame {
    init(body: [UInt8]) throws(WireError) {
        let (chunk, length, isCompressed, data) = try WireChunkFrame.parts(of: body)
        self.init(chunk: chunk, length: length, isCompressed: isCompressed, data: data)
    }
}
