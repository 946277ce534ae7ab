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

func chunkID(of plain: UnsafeRawBufferPointer, authentication: HMAC<SHA256>) -> ChunkID {
    var hash = SHA256()
    hash.update(bufferPointer: plain)
    return ChunkID(digest: authenticate(hash.finalize(), authentication))
}

private func authenticate(_ digest: SHA256.Digest, _ authentication: HMAC<SHA256>) -> HMAC<SHA256>.MAC {
    var authentication = authentication
    digest.withUnsafeBytes { authentication.update(data: Array($0)) }
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
