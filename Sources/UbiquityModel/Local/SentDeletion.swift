/// A deletion that this device has sent, or is about to. Until the answer has come it is sent as the same operation again: others may have
/// brought the item back since.
package struct SentDeletion: Hashable, Sendable {
    package var operation: OperationID
    package var base: RevisionID?
    /// The item is not gone, but where nothing is sent from.
    package var isLeaving: Bool

    package init(operation: OperationID, base: RevisionID?, isLeaving: Bool = false) {
        self.operation = operation
        self.base = base
        self.isLeaving = isLeaving
    }
}
