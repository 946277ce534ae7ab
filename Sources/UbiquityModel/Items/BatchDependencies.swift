/// Operations of a batch are committed in order, each by itself; those that depend on one that failed are skipped: by the server, and
/// by a device that sends a long batch in several requests.
package struct BatchDependencies: Sendable {
    /// Items of which an operation was not committed.
    private var failed: Set<ItemID> = []

    package init() {}

    /// Whether an earlier operation on the same item, or on the folder that this one puts it into, was not committed.
    package func isBlocked(_ operation: ItemOperation) -> Bool {
        guard !failed.isEmpty else { return false }
        if failed.contains(operation.item) { return true }
        guard let parent = operation.action.parent else { return false }
        return failed.contains(parent)
    }

    package mutating func record(_ item: ItemID, _ outcome: OperationOutcome) {
        if case .committed = outcome { return }
        failed.insert(item)
    }
}

extension ItemOperation.Action {
    /// The folder that the item shall lie in.
    fileprivate var parent: ItemID? {
        switch self {
        case .create(let place, _, _, _, _), .announce(let place, _, _), .move(let place), .revive(let place, _):
            place.parent
        case .edit, .setAttributes, .delete, .resolve, .restore, .undelete, .discard: nil
        }
    }
}
