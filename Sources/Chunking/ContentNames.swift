internal import CDigests
internal import Crypto
package import UbiquityModel

/// The name of a plain chunk: HMAC-SHA256(container's key, SHA-256 of the chunk).
package func chunkID(of plain: UnsafeRawBufferPointer, key: ContainerKey) -> ChunkID {
    chunkID(of: plain, authentication: key.authentication)
}

/// The name of a content: HMAC-SHA256(container's key, SHA-256 of its chunks' 32-byte names, one after the other).
///
/// Equal exactly for equal content, since boundaries depend on content only. Both sides compute it from the manifest.
package func contentID(of manifest: Manifest, key: ContainerKey) -> ContentID {
    var list = SHA256()
    for entry in manifest.entries { entry.chunk.bytes.withUnsafeBytes { list.update(bufferPointer: $0) } }
    return ContentID(digest: authenticate(list.finalize(), key.authentication))
}

/// `chunkID` of each, in little more than half the time where the processor computes two at once.
package func chunkIDs(of plains: [UnsafeRawBufferPointer], key: ContainerKey) -> [ChunkID] {
    chunkIDs(of: plains, authentication: key.authentication)
}

func chunkIDs(of plains: [UnsafeRawBufferPointer], authentication: HMAC<SHA256>) -> [ChunkID] {
    guard hasPairs, plains.count > 1 else { return plains.map { chunkID(of: $0, authentication: authentication) } }
    let digestBytes = Int(CDIGESTS_SHA256_BYTES)
    let digests = [UInt8](unsafeUninitializedCapacity: plains.count * digestBytes) { room, count in
        cdigests_sha256(plains.map(\.baseAddress), plains.map(\.count), plains.count, room.baseAddress)
        count = plains.count * digestBytes
    }
    return plains.indices.map { index in
        let digest = digests[index * digestBytes..<(index + 1) * digestBytes]
        return ChunkID(digest: authenticate(digest, authentication))
    }
}

/// Whether two at a time are quicker than one after the other.
private let hasPairs = cdigests_has_sha256() != 0

func chunkID(of plain: UnsafeRawBufferPointer, authentication: HMAC<SHA256>) -> ChunkID {
    var hash = SHA256()
    hash.update(bufferPointer: plain)
    return ChunkID(digest: authenticate(hash.finalize(), authentication))
}

private func authenticate(_ digest: SHA256.Digest, _ authentication: HMAC<SHA256>) -> HMAC<SHA256>.MAC {
    authenticate(digest.withUnsafeBytes { Array($0)[...] }, authentication)
}

private func authenticate(_ digest: ArraySlice<UInt8>, _ authentication: HMAC<SHA256>) -> HMAC<SHA256>.MAC {
    var authentication = authentication
    authentication.update(data: digest)
    return authentication.finalize()
}

extension UbiquityModel.Digest {
    fileprivate init(digest: HMAC<SHA256>.MAC) {
        guard let name = Self(bytes: digest.withUnsafeBytes { Array($0) }) else {
            preconditionFailure("HMAC-SHA256 gives 32 bytes")
        }
        self = name
    }
}
