/// A content that this device has sent as a revision of an item, or is about to.
package struct SentRevision: Hashable, Sendable {
    package var revision: RevisionID
    /// `nil`: the item was announced, and its content has not been read yet.
    package var content: ContentID?
    /// It was sent before the machine was started, or its disk was another one: what is here may never have had that content, or have lost
    /// it with the power.
    package var isDoubtful: Bool

    package init(revision: RevisionID, content: ContentID?, isDoubtful: Bool = false) {
        self.revision = revision
        self.content = content
        self.isDoubtful = isDoubtful
    }
}
