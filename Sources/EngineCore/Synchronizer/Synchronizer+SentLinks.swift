import Reconciliation
import UbiquityModel

/// What was sent of links and not answered: see `SentLink`. Files have revisions for that (`Synchronizer.revision`).
extension Synchronizer {
    /// What was sent of a link and not answered, as the operation that it was: others may have changed it since then, and back to what it
    /// was before. First, if a program has deleted the link since, or given it another target.
    func sentAgain(_ send: Send, _ candidate: Candidate) -> (id: OperationID, action: ItemOperation.Action)? {
        guard let sent = tracker.sentLinks[candidate.id], case .symlink? = candidate.synced?.content else { return nil }
        switch (send, candidate.found?.content) {
        case (.edit, .symlink?), (.delete, nil): break
        default: return nil
        }
        let found = candidate.found
        guard let attributes = found?.attributes ?? candidate.synced?.attributes else { return nil }
        let edited = found.map { tracker.editedAt[$0.place] ?? $0.state.changed } ?? attributes.modified
        let content = ItemContent.symlink(target: sent.target)
        let edit = ItemOperation.Action.edit(
            base: nil,
            content: content,
            attributes: attributes,
            manifest: Manifest(),
            edited: edited
        )
        return (sent.operation, edit)
    }

    /// Whether the link's new target waits until it is known what became of the former one.
    func isDeferred(_ candidate: Candidate) -> Bool {
        guard let sent = tracker.sentLinks[candidate.id], case .symlink(let target)? = candidate.found?.content else {
            return false
        }
        return sent.target != target
    }

    /// What was sent of a link says nothing any more when something else than before is agreed on.
    func forgetSentLinks(_ pass: Pass) throws {
        guard !tracker.sentLinks.isEmpty else { return }
        for id in pass.changes.removals { forgetSentLink(id, pass) }
        for row in pass.changes.upserts where tracker.sentLinks[row.id] != nil {
            if try device.synced(row.id)?.content != row.content { forgetSentLink(row.id, pass) }
        }
    }

    func forgetSentLink(_ item: ItemID, _ pass: Pass) {
        guard !tracker.sentLinks.isEmpty, tracker.sentLinks.removeValue(forKey: item) != nil else { return }
        pass.changes.answered.append(item)
    }
}
