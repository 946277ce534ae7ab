import Replica
import Synchronization
import UbiquityModel

/// All nodes, by the number under which the kernel knows them and by inode.
///
/// Numbers are never used again. A node is found by inode until its last name is gone, by number until its last forget.
final class NodeTable: Sendable {
    static let rootID: UInt64 = 1
    static let stagingID: UInt64 = 2
    /// Numbers with this bit belong to the tree of versions.
    static let versionBit: UInt64 = 1 << 62

    private struct Entry: Sendable {
        let node: Node
        /// As the kernel counts: one for each entry that it was given.
        var lookups: UInt64
        /// The engine's, while it works on an inode.
        var uses: Int
    }

    private struct Reservation: Sendable {
        var count = 0
        var waiting: [@Sendable () -> Void] = []
    }

    private struct State: Sendable {
        var next: UInt64 = 16
        var byID: [UInt64: Entry] = [:]
        var byKey: [InodeKey: UInt64] = [:]
        /// Folders that the kernel does not know, in which the engine changes names directly. A lookup of one waits.
        var reserved: [InodeKey: Reservation] = [:]
        /// Grows when the engine changes what attributes say of an inode that may have no node.
        var epoch: UInt64 = 0
    }

    /// Memory work only; nodes' own mutexes are taken under it, never the other way round.
    private let state: Mutex<State>
    let root: Node
    let staging: Node

    init(root: Node, staging: Node) {
        self.root = root
        self.staging = staging
        var initial = State()
        for node in [root, staging] {
            initial.byID[node.id] = Entry(node: node, lookups: 1, uses: 1)
            initial.byKey[node.key] = node.id
        }
        state = Mutex(initial)
    }

    func node(_ id: UInt64) -> Node? { state.withLock { $0.byID[id]?.node } }
    func node(_ key: InodeKey) -> Node? {
        state.withLock { state in state.byKey[key].flatMap { state.byID[$0]?.node } }
    }
    var count: Int { state.withLock { $0.byID.count } }
    var all: [Node] { state.withLock { state in state.byID.values.map(\.node) } }
    var epoch: UInt64 { state.withLock { $0.epoch } }

    /// Whether the kernel may have names of this folder cached, or a watcher on it.
    func isKnown(_ key: InodeKey) -> Bool {
        state.withLock { state in state.byKey[key].flatMap { state.byID[$0]?.lookups }.map { $0 > 0 } ?? false }
    }

    // MARK: Lookups

    enum Entered {
        /// Counted: the kernel must be told, or `forget` called.
        case node(Node)
        /// The engine changed our attributes since they were read: observe again.
        case observeAgain
        /// The engine works in this folder.
        case reserved
    }

    /// Gives an inode that was just observed to the kernel. The caller tells the node where it was seen.
    func enter(
        _ key: InodeKey,
        kind: LocalKind,
        parent: InodeKey,
        name: Name,
        facts: Node.Facts,
        asOf epoch: UInt64
    ) -> Entered {
        state.withLock { state in
            if let id = state.byKey[key], let known = state.byID[id]?.node {
                if state.reserved[key] != nil, state.byID[id]?.lookups == 0 { return .reserved }
                state.byID[id]?.lookups += 1
                return .node(known)
            }
            guard state.reserved[key] == nil else { return .reserved }
            guard state.epoch == epoch else { return .observeAgain }
            let node = Self.make(&state, key, kind, parent, name, facts, mayBeOld: parent != staging.key)
            state.byID[node.id]?.lookups = 1
            return .node(node)
        }
    }

    /// - Returns: the node, if nobody refers to it any more.
    func forget(_ id: UInt64, _ count: UInt64) -> Node? {
        state.withLock { state in
            guard let entry = state.byID[id] else { return nil }
            guard id > Self.stagingID else { return nil }
            precondition(entry.lookups >= count, "the kernel forgets more than it was told")
            state.byID[id]?.lookups -= count
            return Self.drop(&state, id)
        }
    }

    /// The inode's last name is gone: its number may be used again by the disk.
    func unname(_ node: Node) {
        state.withLock { state in
            if state.byKey[node.key] == node.id { state.byKey[node.key] = nil }
        }
    }

    /// The numbers of all but the fixed nodes are forgotten.
    func removeAll() {
        state.withLock { state in
            state.byID = state.byID.filter { $0.key <= Self.stagingID }
            state.byKey = state.byKey.filter { $0.value <= Self.stagingID }
        }
    }

    // MARK: The engine

    /// The node of an inode that the engine works on and has just observed, made if the kernel does not know it. `release` must follow.
    /// nil: observe again.
    func use(
        _ key: InodeKey,
        kind: LocalKind,
        parent: InodeKey,
        name: Name,
        facts: Node.Facts,
        asOf epoch: UInt64
    ) -> Node? {
        state.withLock { state in
            if let id = state.byKey[key], let known = state.byID[id]?.node {
                state.byID[id]?.uses += 1
                return known
            }
            guard state.epoch == epoch else { return nil }
            let node = Self.make(&state, key, kind, parent, name, facts, mayBeOld: parent != staging.key)
            state.byID[node.id]?.uses = 1
            return node
        }
    }

    /// - Returns: the node, if nobody refers to it any more.
    func release(_ node: Node) -> Node? {
        state.withLock { state in
            state.byID[node.id]?.uses -= 1
            return Self.drop(&state, node.id)
        }
    }

    /// What an observation made before now says of our attributes may be wrong.
    func advanceEpoch() { state.withLock { $0.epoch += 1 } }

    /// Keeps the kernel from getting to know these folders, unless it knows one of them already.
    func reserve(_ keys: Set<InodeKey>) -> Bool {
        state.withLock { state -> Bool in
            for key in keys {
                if let id = state.byKey[key], let entry = state.byID[id], entry.lookups > 0 { return false }
            }
            for key in keys { state.reserved[key, default: Reservation()].count += 1 }
            return true
        }
    }

    /// - Returns: the continuations of lookups that waited.
    func unreserve(_ keys: Set<InodeKey>) -> [@Sendable () -> Void] {
        state.withLock { state in
            keys.flatMap { key -> [@Sendable () -> Void] in
                state.reserved[key]?.count -= 1
                guard state.reserved[key]?.count == 0 else { return [] }
                return state.reserved.removeValue(forKey: key)?.waiting ?? []
            }
        }
    }

    /// False if the folder is not reserved any more: try again at once.
    func whenUnreserved(_ key: InodeKey, _ continuation: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard state.reserved[key] != nil else { return false }
            state.reserved[key]?.waiting.append(continuation)
            return true
        }
    }

    private static func make(
        _ state: inout State,
        _ key: InodeKey,
        _ kind: LocalKind,
        _ parent: InodeKey,
        _ name: Name,
        _ facts: Node.Facts,
        mayBeOld: Bool
    ) -> Node {
        let id = state.next
        state.next += 1
        let node = Node(id: id, key: key, kind: kind, parent: parent, name: name, facts: facts, mayBeOld: mayBeOld)
        state.byID[id] = Entry(node: node, lookups: 0, uses: 0)
        state.byKey[key] = id
        return node
    }

    private static func drop(_ state: inout State, _ id: UInt64) -> Node? {
        guard let entry = state.byID[id], entry.lookups == 0, entry.uses == 0 else { return nil }
        state.byID[id] = nil
        if state.byKey[entry.node.key] == id { state.byKey[entry.node.key] = nil }
        return entry.node
    }
}
