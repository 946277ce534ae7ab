package import UbiquityModel

/// Where a batch is committed: a container inside a transaction, which the rules also look things up in.
package protocol CommitStore: CommitView {
    /// Whether that operation was committed, in this batch or ever before.
    func isCommitted(_ operation: OperationID) throws(Failure) -> Bool
    /// Writes the item over its former state, or as a new one, and what comes with it. A content that is there already stays.
    /// - Parameter change: its item has its log position.
    /// - Parameter context: who deletes the item, and when, if it does that.
    mutating func write(_ change: CommitChange, _ context: CommitContext) throws(Failure)
    /// `isCommitted` holds for that operation from now on.
    mutating func remember(_ operation: OperationID) throws(Failure)
}

/// Commits the operations of one request, in order, each by itself: what all catalogues have in common.
///
/// What comes after answers of `answerBytes` is skipped, and asked for again: each answer may name a thousand versions.
///
/// The catalogue begins a transaction and checks who asks, performs the entries, writes the log that came of them, and ends the
/// transaction. If a store throws, all of it must be undone.
package struct CommitBatch {
    package enum Entry: Hashable, Sendable {
        case operation(ItemOperation)
        /// It was refused before the catalogue was asked: what the device sent is not what it claims to be.
        case refused(item: ItemID?, reason: String)
    }

    /// About as long as the longest request.
    package static let answerBytes = 32 * 1024 * 1024

    /// What was written, in order.
    package private(set) var log: [LogEntry] = []
    private let context: CommitContext
    private var dependencies = BatchDependencies()
    /// Where items were that have left their names in this batch for others to get them, and have no new ones yet.
    private var steppedAside: [ItemID: Place] = [:]
    private var counter: UInt64
    /// Of the answers so far, about as long as they are on the wire.
    private var answered = 0

    /// - Parameter counter: of the container's newest position.
    package init(after counter: UInt64, context: CommitContext) {
        self.counter = counter
        self.context = context
    }

    package mutating func perform<Store: CommitStore>(
        _ entry: Entry,
        in store: inout Store
    ) throws(Store.Failure) -> OperationOutcome {
        switch entry {
        case .refused(let item, let reason):
            let outcome = OperationOutcome.invalid(reason)
            if let item { dependencies.record(item, outcome) }
            return outcome
        case .operation(let operation):
            let isBlocked = answered > Self.answerBytes || dependencies.isBlocked(operation)
            let outcome = isBlocked ? .skipped : try commit(operation, in: &store)
            if !steppedAside.isEmpty { try settle(operation, outcome, in: &store) }
            answered += outcome.byteCount
            dependencies.record(operation.item, outcome)
            return outcome
        }
    }

    private mutating func commit<Store: CommitStore>(
        _ operation: ItemOperation,
        in store: inout Store
    ) throws(Store.Failure) -> OperationOutcome {
        if try store.isCommitted(operation.id) {
            // A request whose answer was lost: nothing is done twice.
            guard let item = try store.item(operation.item) else { return .noSuchItem }
            return .committed(item)
        }
        let decision = try decide(operation, store)
        if case .change = decision, let place = operation.action.place,
            TransitionalName.item(of: place.name) == operation.item, let item = try store.item(operation.item),
            !item.isDeleted, !TransitionalName.matches(item.place.name)
        {
            steppedAside[item.id] = item.place
        }
        switch decision {
        case .answer(let outcome):
            // An operation that found nothing to change was done too, and must not do more when it is repeated later.
            if case .committed = outcome { try store.remember(operation.id) }
            return outcome
        case .change(var change):
            counter += 1
            change.item.position = counter
            try store.write(change, context)
            try store.remember(operation.id)
            log.append(LogEntry(position: counter, item: change.item.id, operation: operation.id))
            return .committed(change.item)
        }
    }

    /// An item that has left its name and does not get the one that it was to get goes back, under the next free name if its own is taken:
    /// nobody else knows where it belongs.
    private mutating func settle<Store: CommitStore>(
        _ operation: ItemOperation,
        _ outcome: OperationOutcome,
        in store: inout Store
    ) throws(Store.Failure) {
        guard case .move(let place) = operation.action, TransitionalName.item(of: place.name) != operation.item,
            let former = steppedAside.removeValue(forKey: operation.item)
        else { return }
        if case .committed = outcome { return }
        guard var item = try store.item(operation.item), !item.isDeleted, TransitionalName.matches(item.place.name),
            let back = try freePlace(former, for: item, store)
        else { return }
        counter += 1
        item.place = back
        item.position = counter
        try store.write(CommitChange(item: item), context)
        log.append(LogEntry(position: counter, item: item.id, operation: operation.id))
    }

    /// `nil` if its folder is none any more, or lies in the item.
    private func freePlace<Store: CommitStore>(
        _ wanted: Place,
        for item: RemoteItem,
        _ store: Store
    ) throws(Store.Failure) -> Place? {
        let rules = CommitRules(view: store, context: context)
        guard let place = try rules.freePlace(wanted, for: item.id), try rules.refusal(of: place, for: item) == nil
        else {
            return nil
        }
        return place
    }

    /// By itself, so that the rules' copy of the store is gone before anything is written: a store of dictionaries would be copied.
    private func decide<Store: CommitStore>(
        _ operation: ItemOperation,
        _ store: Store
    ) throws(Store.Failure) -> CommitDecision {
        try CommitRules(view: store, context: context).decide(operation)
    }
}

extension ItemOperation.Action {
    /// Where an item that may be there already is to be.
    fileprivate var place: Place? {
        switch self {
        case .move(let place), .create(let place, _, _, _, _): place
        case .announce, .edit, .setAttributes, .delete, .revive, .resolve, .restore, .undelete, .discard: nil
        }
    }
}

extension OperationOutcome {
    /// About as long as it is on the wire.
    fileprivate var byteCount: Int {
        switch self {
        case .committed(let item), .superseded(let item):
            let target = item.content.kind == .symlink ? Int(item.content.size) : 0
            return item.attributes.extended.reduce(256 + item.conflicts.count * 256 + target) {
                $0 + $1.key.count + $1.value.count
            }
        case .missingChunks(let chunks): return 64 + chunks.count * 34
        case .invalid(let reason): return 64 + reason.utf8.count
        case .nameTaken, .parentMissing, .notEmpty, .cycle, .noSuchItem, .quotaExceeded, .skipped: return 64
        }
    }
}
