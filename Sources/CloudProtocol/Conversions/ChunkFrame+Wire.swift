internal import FoundationEssentials
package import UbiquityModel

extension WireChunkFrame {
    /// One chunk as it is stored and sent.
    package init(chunk: ChunkID, length: UInt32, isCompressed: Bool, data: [UInt8]) {
        self.init()
        self.chunk = chunk.wire
        self.length = length
        compressed = isCompressed
        self.data = Data(data)
    }

    /// The parts of a frame, checked for what can be known without decompressing: the content is verified against the chunk's
    /// name by `ChunkFrame.decoded(key:)`.
    package func decoded() throws(WireError) -> (chunk: ChunkID, length: UInt32, isCompressed: Bool, data: [UInt8]) {
        let chunk = try ChunkID(wire: self.chunk, "a chunk's id")
        guard length > 0, length <= Manifest.maximumChunkSize else {
            throw .outOfRange("the length of a chunk", value: Int64(length))
        }
        guard !data.isEmpty else { throw .missing("the data of a chunk") }
        // Compression is kept only where it does not make a chunk longer.
        let fits = compressed ? data.count <= Int(length) : data.count == Int(length)
        guard fits else { throw .wrongLength("the data of a chunk of \(length)", bytes: data.count) }
        return (chunk, length, compressed, [UInt8](data))
    }
}
