/// A target that this device has given a link in the cloud, or is about to. A link has no revisions by which that could be told from what
/// others have made of it since, perhaps what it was before: until the answer has come it is sent as the same operation again.
package struct SentLink: Hashable, Sendable {
    package var operation: OperationID
    package var target: [UInt8]
    /// See `SentRevision`.
    package var isDoubtful: Bool

    package init(operation: OperationID, target: [UInt8], isDoubtful: Bool = false) {
        self.operation = operation
        self.target = target
        self.isDoubtful = isDoubtful
    }
}
