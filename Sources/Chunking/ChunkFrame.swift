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
        guard (1...Manifest.maximumChunkSize).contains(Int(length)) else { throw .corrupted(chunk) }
        let plain: ArraySlice<UInt8>
        if isCompressed {
            guard let decompressed = Compression.decompress(data, length: Int(length)) else { throw .corrupted(chunk) }
            plain = decompressed[...]
        } else {
            plain = data
        }
        guard plain.count == Int(length), plain.withUnsafeBytes({ chunkID(of: $0, key: key) }) == chunk else {
            throw .corrupted(chunk)
        }
        return plain
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
