import UbiquityModel

/// A pass looks at one place after the other, and programs go on meanwhile: what is renamed from a place that is still to be looked at to one that
/// was looked at is seen nowhere, what is renamed the other way in both places.
extension ItemTracker {
    /// Has those items looked at again of which the pass would conclude that they have gone, or have become another file, although what it saw
    /// was not there at one moment.
    /// - Parameter isComplete: that all is noted that programs had done when the pass had looked.
    package func distrust(_ pass: Pass, isComplete: Bool) {
        guard !isComplete || changeCount > pass.seenUpTo else { return }
        let doubtful = pass.all.filter { $0.verdict == nil && isLossOrSuccession($0) }
        guard !doubtful.isEmpty else { return }
        let moved = isComplete ? itemsAtNewNames(pass) : []
        for candidate in doubtful {
            if !isComplete {
                candidate.verdict = .later(.milliseconds(1))
            } else if moved.contains(candidate.id) {
                candidate.verdict = .again
            }
        }
    }

    /// Items that the pass came to by a name that has been given, taken or moved since it began.
    private func itemsAtNewNames(_ pass: Pass) -> Set<ItemID> {
        pass.visitedPlaces.reduce(into: []) { items, visited in
            guard let change = changedAt[visited.key], change > pass.seenUpTo,
                aspects[visited.key]?.contains(.entry) ?? false
            else { return }
            items.formUnion(visited.value)
        }
    }

    private func isLossOrSuccession(_ candidate: Candidate) -> Bool {
        guard let row = candidate.synced else { return false }
        guard let found = candidate.found else { return true }
        guard let key = row.local?.key ?? candidate.formerKey else { return false }
        return key != found.state.key
    }
}
