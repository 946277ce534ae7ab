internal import Dispatch
internal import Synchronization
internal import UbiquityModel

/// Rows that another thread is writing while the one that reads in bursts goes on. What these rows could change, that one reads when they are
/// written; all else it reads at once. Threads that do not read in bursts are not held up: they see the rows when they are there.
///
/// `@unchecked Sendable`: `items`, `places` and `inodes` are touched by `expect` and `wait` alone, which only the thread that reads in bursts
/// calls (`StateDatabase.awaitRows` looks who it is); the rest is safe by itself.
final class AwaitedRows: @unchecked Sendable {
    /// What a read asks for.
    enum Subject {
        case anything
        case item(ItemID)
        case place(Place)
        case inode(InodeKey)
        /// Nothing that depends on the rows of the synced tree.
        case remoteTree
    }

    private let isExpecting = Atomic(false)
    private let writing = DispatchGroup()
    private var items: Set<ItemID> = []
    private var places: Set<Place> = []
    private var inodes: Set<InodeKey> = []

    /// Whether the thread that expects rows may have to wait; to others it says nothing.
    var mayBeMissing: Bool { isExpecting.load(ordering: .relaxed) }

    /// - Parameter rows: of items that have none. Whoever writes them says so by `noteWritten`, also if that fails.
    func expect(_ rows: [SyncedItem]) {
        wait(for: .anything)
        items = Set(rows.map(\.id))
        places = Set(rows.map(\.place))
        inodes = Set(rows.compactMap { $0.local?.key })
        isExpecting.store(true, ordering: .relaxed)
        writing.enter()
    }

    /// From whichever thread.
    func noteWritten() { writing.leave() }

    func wait(for subject: Subject) {
        guard mayBeMissing, concerns(subject) else { return }
        writing.wait()
        isExpecting.store(false, ordering: .relaxed)
        (items, places, inodes) = ([], [], [])
    }

    private func concerns(_ subject: Subject) -> Bool {
        switch subject {
        case .anything: true
        case .item(let item): items.contains(item)
        case .place(let place): places.contains(place)
        case .inode(let key): inodes.contains(key)
        case .remoteTree: false
        }
    }
}
