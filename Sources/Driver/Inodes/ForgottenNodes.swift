import Synchronization

/// Nodes that the kernel has forgotten, until a reader has nothing else to do: to close what they keep takes as long as many an answer,
/// and the kernel tells of a deleted file just before its program asks for the next thing.
struct ForgottenNodes: ~Copyable, Sendable {
    /// What a deleted file holds of the disk is free a moment later, for no more files than this.
    private static let limit = 64

    /// A leaf: memory work only.
    private let nodes = Mutex<[Node]>([])

    /// False when there is no room.
    func keep(_ node: Node) -> Bool {
        nodes.withLock { nodes in
            guard nodes.count < Self.limit else { return false }
            nodes.append(node)
            return true
        }
    }

    func take() -> Node? { nodes.withLock { $0.popLast() } }
}
