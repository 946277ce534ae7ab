package import UbiquityModel

extension Placeholder {
    /// Without the flags, which older versions did not write.
    private static let encodedCount = 43
    private static let announcedFlag: UInt8 = 1
    /// Of a file in a package. Readers of version 1 would take such a placeholder for that of the whole revision.
    private static let packageVersion: UInt8 = 2

    /// Version (1 byte), revision (16), generation (8), size (8), modification time (8), mode (2), flags (1); in version 2, which is
    /// used for files in packages only, the offset in the revision (8) follows; big-endian. Readers of version 1 accept, and do not need,
    /// bytes that follow the mode.
    package var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.integer(offset == nil ? FormatVersion.placeholder : Self.packageVersion)
        writer.bytes(revision.bytes)
        writer.integer(generation)
        writer.integer(size)
        writer.integer(modified.nanoseconds)
        writer.integer(mode)
        writer.integer(wasAnnounced ? Self.announcedFlag : 0)
        if let offset { writer.integer(offset) }
        return writer.result
    }

    package init?(encoded: [UInt8]) {
        var reader = ByteReader(encoded)
        guard encoded.count >= Self.encodedCount, let version = reader.integer(UInt8.self),
            version == FormatVersion.placeholder || version == Self.packageVersion,
            let revision = reader.bytes(16).flatMap({ RevisionID(bytes: $0) }),
            let generation = reader.integer(UInt64.self),
            let size = reader.integer(Int64.self), size >= 0,
            let modified = reader.integer(Int64.self),
            let mode = reader.integer(UInt16.self)
        else { return nil }
        let flags = reader.integer(UInt8.self) ?? 0
        var offset: Int64?
        if version == Self.packageVersion {
            guard let value = reader.integer(Int64.self), value >= 0 else { return nil }
            offset = value
        }
        self.init(
            revision: revision,
            generation: generation,
            size: size,
            modified: Timestamp(nanoseconds: modified),
            mode: mode,
            wasAnnounced: flags & Self.announcedFlag != 0,
            offset: offset
        )
    }
}
