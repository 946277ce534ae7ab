package import UbiquityModel

/// A chunk as it is stored and travels: compressed where that pays.
package struct ChunkFrame: Sendable, Hashable {
    package var chunk: ChunkID
    /// Of the plain chunk, in bytes.
    package var length: UInt32
    package var isCompressed: Bool
    /// The plain bytes, or one zstd frame. A slice, so that they can stay in the message in which they came.
    package var data: ArraySlice<UInt8>

    package init(chunk: ChunkID, length: UInt32, isCompressed: Bool, data: ArraySlice<UInt8>) {
        self.chunk = chunk
        self.length = length
        self.isCompressed = isCompressed
        self.data = data
    }

    /// Compresses with zstd, level 3, and keeps that if it saves a sixteenth or more.
    package static func encode(_ plain: UnsafeRawBufferPointer, as chunk: ChunkID) -> ChunkFrame {
        compressed(plain, as: chunk)
            ?? ChunkFrame(chunk: chunk, length: UInt32(plain.count), isCompressed: false, data: Array(plain)[...])
    }

    /// The same, without a copy of what is not compressed.
    package static func encode(_ plain: ArraySlice<UInt8>, as chunk: ChunkID) -> ChunkFrame {
        plain.withUnsafeBytes { compressed($0, as: chunk) }
            ?? ChunkFrame(chunk: chunk, length: UInt32(plain.count), isCompressed: false, data: plain)
    }

    private static func compressed(_ plain: UnsafeRawBufferPointer, as chunk: ChunkID) -> ChunkFrame? {
        guard let data = Compression.compress(plain, into: plain.count - plain.count / 16) else { return nil }
        return ChunkFrame(chunk: chunk, length: UInt32(plain.count), isCompressed: true, data: data[...])
    }

    /// The plain chunk, verified against its name. Never allocates more than a chunk may have, whatever the frame says.
    package func decoded(key: ContainerKey) throws(ChunkError) -> ArraySlice<UInt8> {
        let plain = try plain()
        guard plain.withUnsafeBytes({ chunkID(of: $0, key: key) }) == chunk else { throw .corrupted(chunk) }
        return plain
    }

    /// `decoded` of each, and quicker.
    package static func decoded(
        _ frames: [ChunkFrame],
        key: ContainerKey
    ) -> [Result<ArraySlice<UInt8>, ChunkError>] {
        some(of: frames).flatMap { decodedTogether($0, key: key) }
    }

    /// Verifies each against its name; no more than 4 MiB of plain chunks are in memory at a time.
    package static func verify(_ frames: [ChunkFrame], key: ContainerKey) throws(ChunkError) {
        for some in some(of: frames) {
            for plain in decodedTogether(some, key: key) { _ = try plain.get() }
        }
    }

    private static func some(of frames: [ChunkFrame]) -> [ArraySlice<ChunkFrame>] {
        let count = 4 * 1024 * 1024 / Manifest.maximumChunkSize
        return stride(from: 0, to: frames.count, by: count).map { frames[$0..<min(frames.count, $0 + count)] }
    }

    private static func decodedTogether(
        _ frames: ArraySlice<ChunkFrame>,
        key: ContainerKey
    ) -> [Result<ArraySlice<UInt8>, ChunkError>] {
        let plains = frames.map { frame in Result { () throws(ChunkError) in try frame.plain() } }
        var ids = withBytes(of: plains.compactMap { try? $0.get() }[...]) { chunkIDs(of: $0, key: key) }[...]
        return zip(frames, plains).map { frame, plain in
            plain.flatMap { ids.popFirst() == frame.chunk ? .success($0) : .failure(.corrupted(frame.chunk)) }
        }
    }

    /// What it says that the chunk is.
    private func plain() throws(ChunkError) -> ArraySlice<UInt8> {
        guard (1...Manifest.maximumChunkSize).contains(Int(length)) else { throw .corrupted(chunk) }
        guard isCompressed else {
            guard data.count == Int(length) else { throw .corrupted(chunk) }
            return data
        }
        guard let decompressed = Compression.decompress(data, length: Int(length)) else { throw .corrupted(chunk) }
        return decompressed[...]
    }

    /// All at once: the buffers are valid only during the call.
    private static func withBytes<Value>(
        of plains: ArraySlice<ArraySlice<UInt8>>,
        before: [UnsafeRawBufferPointer] = [],
        _ body: ([UnsafeRawBufferPointer]) -> Value
    ) -> Value {
        guard let first = plains.first else { return body(before) }
        return first.withUnsafeBytes { withBytes(of: plains.dropFirst(), before: before + [$0], body) }
    }
}

/// Why a frame gives no chunk.
package enum ChunkError: Error, Hashable, Sendable {
    /// It is not what its name says: damaged on a disk or on the way, or forged.
    case corrupted(ChunkID)
}

extension ChunkError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .corrupted(let chunk): "chunk \(chunk) is corrupted"
        }
    }
}
