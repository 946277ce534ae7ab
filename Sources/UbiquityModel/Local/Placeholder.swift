/// What stands for the content of a dataless file: kept in an extended attribute of its inode.
///
/// While it is there, the inode's own size, times and data are never evidence of a local change, and are put right from
/// it.
package struct Placeholder: Hashable, Sendable {
    package var revision: RevisionID
    /// A random number that every creation and every eviction draws anew: what is remembered of the ranges that are here (in the
    /// state database) is of use only for the same number, so that a hole is never taken for content.
    package var generation: UInt64
    /// Bytes.
    package var size: Int64
    package var modified: Timestamp
    /// The true permission bits.
    package var mode: UInt16
    /// When it was made, nobody but its author had the content. It may have come since, or never.
    package var wasAnnounced: Bool
    /// Where its content begins in that of the revision, which is a package's; `nil` for a file that is an item of its own.
    package var offset: Int64?

    package init(
        revision: RevisionID,
        generation: UInt64,
        size: Int64,
        modified: Timestamp,
        mode: UInt16,
        wasAnnounced: Bool = false,
        offset: Int64? = nil
    ) {
        self.revision = revision
        self.generation = generation
        self.size = size
        self.modified = modified
        self.mode = mode & 0o777
        self.wasAnnounced = wasAnnounced
        self.offset = offset
    }
}
