import Chunking
import CloudProtocol
import UbiquityModel

@testable import ChunkStore

/// Chunks on the way and in packs.
extension FuzzTarget {
    private static let key = ContainerKey(bytes: [UInt8](repeating: 7, count: 32))

    static let frames: [FuzzTarget] = [
        FuzzTarget("a chunk's frame", sample: frame) { bytes in
            guard let parts = accepted(WireError.self, { () throws(WireError) in try WireChunkFrame.parts(of: bytes) })
            else { return false }
            let general = try WireChunkFrame(body: bytes).decoded()
            try promise(
                general.chunk == parts.chunk && general.length == parts.length
                    && general.isCompressed == parts.isCompressed && general.data == parts.data,
                "two ways, two frames"
            )
            let frame = ChunkFrame(
                chunk: parts.chunk,
                length: parts.length,
                isCompressed: parts.isCompressed,
                data: parts.data
            )
            guard let key,
                let plain = accepted(ChunkError.self, { () throws(ChunkError) in try frame.decoded(key: key) })
            else { return false }
            try promise(plain.count == Int(parts.length), "\(plain.count) bytes, where \(parts.length) were promised")
            return true
        },
        FuzzTarget("messages one after the other") { arbitrary in
            var bytes = [UInt8]()
            for _ in 0..<arbitrary.below(6) { bytes += LengthPrefix.encode(arbitrary.bytes(arbitrary.below(40))) }
            return bytes
        } check: { bytes in
            let whole = messages(bytes, pieces: bytes.count)
            let parts = messages(bytes, pieces: 1 + bytes.count % 7)
            try promise(whole.messages == parts.messages && whole.isEnd == parts.isEnd, "pieces make a difference")
            return whole.isEnd
        },
        FuzzTarget("a record in a pack") { arbitrary in
            var bytes = [UInt8]()
            let data = arbitrary.bytes(1 + arbitrary.below(100))
            let chunk = StoredChunk(
                container: arbitrary.integer(),
                chunk: try arbitrary.chunk(),
                length: UInt32(data.count),
                isCompressed: false,
                data: data[...]
            )
            PackRecord.encodeHeader(of: chunk, into: &bytes)
            bytes += chunk.data
            return bytes
        } check: { bytes in
            _ = PackHeader.examine(bytes)
            var isValid = false
            for offset in [0, 1, bytes.count / 2, bytes.count] where offset <= bytes.count {
                guard let length = PackRecord.validLength(in: bytes, at: offset) else { continue }
                try promise(
                    offset + length <= bytes.count,
                    "a record of \(length) bytes at \(offset) of \(bytes.count)"
                )
                isValid = true
            }
            return isValid
        },
        FuzzTarget("a manifest") { arbitrary in
            try arbitrary.manifest().encoded
        } check: { bytes in
            guard let manifest = Manifest(encoded: bytes) else { return false }
            try promise(manifest.encoded == bytes, "another manifest")
            try promise(manifest.size >= manifest.entries.count, "\(manifest.size) bytes")
            return true
        },
        FuzzTarget("a manifest's difference") { arbitrary in
            let base = try arbitrary.manifest()
            var other = base
            other.entries += try arbitrary.manifest(upTo: 4).entries
            return ManifestDifference(from: base, to: other).encoded
        } check: { bytes in
            guard let difference = ManifestDifference(encoded: bytes) else { return false }
            try promise(difference.encoded == bytes, "another difference")
            guard let made = difference.applied(to: .short, limit: 60) else { return true }
            try promise(made.entries.count == difference.count && difference.count <= 60, "\(difference.count) chunks")
            return true
        },
    ]

    @Sendable private static func frame(_ arbitrary: inout Arbitrary) throws -> [UInt8] {
        // The longest at times, of what compresses to nothing: that is how bombs are made.
        let count = arbitrary.chance(8) ? Manifest.maximumChunkSize : 1 + arbitrary.below(300)
        let plain = arbitrary.chance(2) ? arbitrary.bytes(min(count, 2000)) : [UInt8](repeating: 1, count: count)
        guard let key else { return [] }
        let chunk = plain.withUnsafeBytes { chunkID(of: $0, key: key) }
        let frame = plain.withUnsafeBytes { ChunkFrame.encode($0, as: chunk) }
        return try WireChunkFrame(
            chunk: frame.chunk,
            length: frame.length,
            isCompressed: frame.isCompressed,
            data: frame.data
        ).body
    }

    private static func messages(_ bytes: [UInt8], pieces: Int) -> (messages: [[UInt8]], isEnd: Bool) {
        var decoder = LengthPrefixedDecoder(limit: 4096)
        var messages = [[UInt8]]()
        var rest = bytes[...]
        do {
            while !rest.isEmpty {
                decoder.append(rest.prefix(max(1, pieces)))
                rest = rest.dropFirst(max(1, pieces))
                while let message = try decoder.next() { messages.append(message) }
            }
            try decoder.finish()
            return (messages, true)
        } catch { return (messages, false) }
    }
}
