import CloudClient
import Synchronization

/// Closed while the user wants no traffic: what is on its way then ends at the next chunk, and goes on from there when it is wanted again.
final class TransferGate: Sendable {
    private let isClosed = Atomic(false)

    func set(closed: Bool) { isClosed.store(closed, ordering: .relaxed) }

    func pass() throws(CloudError) {
        if isClosed.load(ordering: .relaxed) { throw .cancelled }
    }
}
