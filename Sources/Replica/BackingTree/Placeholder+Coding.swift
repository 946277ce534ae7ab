package import UbiquityModel

extension Placeholder {
    /// Without the flags, which older versions did not write.
    private static let encodedCount = 43
    private static let announcedFlag: UInt8 = 1

    /// Version (1 byte), revision (16), generation (8), size (8), modification time (8), mode (2), flags (1); big-endian.
    /// Readers of version 1 accept, and do not need, bytes that follow the mode.
    package var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.integer(FormatVersion.placeholder)
        writer.bytes(revision.bytes)
        writer.integer(generation)
        writer.integer(size)
        writer.integer(modified.nanoseconds)
        writer.integer(mode)
        writer.integer(wasAnnounced ? Self.announcedFlag : 0)
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
            mode: mode,
            wasAnnounced: (reader.integer(UInt8.self) ?? 0) & Self.announcedFlag != 0
        )
    }
}
