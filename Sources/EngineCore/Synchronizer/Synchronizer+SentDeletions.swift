package import UbiquityModel

/// Deletions that were sent and not answered: see `SentDeletion`. Until the answer is written down they are sent as the same operations.
extension Synchronizer {
    /// From the state database, before the scan.
    package func load(sentDeletions: [ItemID: SentDeletion]) {
        unansweredDeletions = sentDeletions
        tracker.leftItems = Set(sentDeletions.filter { $0.value.isLeaving }.keys)
    }

    /// What is agreed on anew, or is here after all, can be deleted anew.
    func forgetDeletions(_ pass: Pass) {
        guard !unansweredDeletions.isEmpty else { return }
        for id in pass.changes.removals { forgetDeletion(id, pass) }
        for row in pass.changes.upserts { forgetDeletion(row.id, pass) }
        for candidate in pass.all where candidate.verdict == .done {
            // Here after all, or the cloud has said that it is gone.
            guard candidate.found != nil || candidate.remote?.isDeleted ?? true else { continue }
            forgetDeletion(candidate.id, pass)
        }
    }

    /// Once that is written down.
    func forgetDeletion(_ item: ItemID, _ pass: Pass) {
        if unansweredDeletions[item] != nil { pass.changes.answeredDeletions.append(item) }
    }

    /// The operation as which it was sent before.
    func unanswered(_ action: ItemOperation.Action, of item: ItemID) -> OperationID? {
        guard case .delete(let base, _) = action, let sent = unansweredDeletions[item] else { return nil }
        return sent.base == base ? sent.operation : nil
    }
}
