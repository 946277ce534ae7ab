package import UbiquityModel

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

    package init(revision: RevisionID, generation: UInt64, size: Int64, modified: Timestamp, mode: UInt16) {
        self.revision = revision
        self.generation = generation
        self.size = size
        self.modified = modified
        self.mode = mode & 0o777
    }
}

extension Placeholder {
    private static let encodedCount = 43

    /// Version (1 byte), revision (16), generation (8), size (8), modification time (8), mode (2); big-endian. Readers of
    /// version 1 accept, and do not need, bytes that follow.
    package var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.integer(FormatVersion.placeholder)
        writer.bytes(revision.bytes)
        writer.integer(generation)
        writer.integer(size)
        writer.integer(modified.nanoseconds)
        writer.integer(mode)
        return writer.result
    }

    package init?(encoded: [UInt8]) {
        var reader = ByteReader(encoded)
        guard encoded.count >= Self.encodedCount, reader.integer(UInt8.self) == FormatVersion.placeholder,
            let revision = reader.bytes(16).flatMap({ RevisionID(bytes: $0) }),
            let generation = reader.integer(UInt64.self),
            let size = reader.integer(Int64.self), size >= 0,
            let modified = reader.integer(Int64.self),
            let mode = reader.integer(UInt16.self)
        else { return nil }
        self.init(
            revision: revision,
            generation: generation,
            size: size,
            modified: Timestamp(nanoseconds: modified),
            mode: mode
        )
    }
}
