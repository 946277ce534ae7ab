import CatalogModel
import UbiquityModel

/// What one device asks of the catalogues. Devices are named by their tokens' first bytes.
enum CatalogStep: Sendable {
    case commit(CommitRequest, device: UInt8)
    case addChunks([ChunkRecord], device: UInt8)
    /// - Parameter fresh: the device that it becomes if its nonce is an old one.
    case openSession(device: UInt8, nonce: UInt8, freshNonce: UInt8, fresh: UInt8, proposed: UInt8?)
    case revoke(name: String, device: UInt8)
    case declarePackages(PackageDeclaration, device: UInt8)
    /// The server discards what is kept no longer, and collects chunks.
    case keepHouse(now: Timestamp)
}

extension CatalogStep: CustomStringConvertible {
    var description: String {
        switch self {
        case .commit(let request, let device):
            "device \(device) commits, chunks \(request.chunks.map(\.chunk)): \(request.entries)"
        case .addChunks(let chunks, let device): "device \(device) sends chunks \(chunks.map(\.chunk))"
        case .openSession(let device, let nonce, _, _, _): "device \(device) opens a session with nonce \(nonce)"
        case .revoke(let name, let device): "device \(device) revokes \(name)"
        case .declarePackages(let change, let device):
            "device \(device) declares \(change.added.sorted()), and not \(change.removed.sorted())"
        case .keepHouse(let now): "the server keeps house at \(now.nanoseconds / 1_000_000_000)"
        }
    }
}
