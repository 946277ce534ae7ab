internal import Chunking
internal import CloudProtocol
internal import NIOCore

/// The body of an upload: frames with their lengths, encoded one after the other as the connection takes them.
struct FrameBody: Sequence, IteratorProtocol, Sendable {
    /// Small frames go out together.
    private static let pieceBytes = 128 * 1024

    private var rest: ArraySlice<ChunkFrame>

    init(frames: [ChunkFrame]) { rest = frames[...] }

    mutating func next() -> ByteBuffer? {
        guard !rest.isEmpty else { return nil }
        var buffer = ByteBuffer()
        while buffer.readableBytes < Self.pieceBytes, let frame = rest.popFirst() {
            let head = WireChunkFrame.head(
                chunk: frame.chunk,
                length: frame.length,
                isCompressed: frame.isCompressed,
                dataCount: frame.data.count
            )
            buffer.writeBytes(head)
            buffer.writeBytes(frame.data)
        }
        return buffer
    }
}

extension WireChunkFrame {
    init(_ frame: ChunkFrame) {
        self.init(chunk: frame.chunk, length: frame.length, isCompressed: frame.isCompressed, data: frame.data)
    }
}

extension ChunkFrame {
    init(body: [UInt8]) throws(WireError) {
        let (chunk, length, isCompressed, data) = try WireChunkFrame.parts(of: body)
        self.init(chunk: chunk, length: length, isCompressed: isCompressed, data: data)
    }
}
