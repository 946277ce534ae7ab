/// A content that this device has sent as a revision of an item, or is about to.
package struct SentRevision: Hashable, Sendable {
    package var revision: RevisionID
    /// `nil`: the item was announced, and its content has not been read yet.
    package var content: ContentID?

    package init(revision: RevisionID, content: ContentID?) {
        self.revision = revision
        self.content = content
    }
}
