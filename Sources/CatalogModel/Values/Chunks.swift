package import UbiquityModel

/// A chunk in the chunk store: where its record lies, and what is needed to send it.
package struct ChunkRecord: Hashable, Sendable {
    package var chunk: ChunkID
    /// Of the plain chunk in bytes.
    package var length: UInt32
    package var isCompressed: Bool
    package var pack: UInt64
    package var offset: UInt64
    /// Of the record in the pack, in bytes.
    package var recordLength: UInt32

    package init(chunk: ChunkID, length: UInt32, isCompressed: Bool, pack: UInt64, offset: UInt64, recordLength: UInt32)
    {
        self.chunk = chunk
        self.length = length
        self.isCompressed = isCompressed
        self.pack = pack
        self.offset = offset
        self.recordLength = recordLength
    }

    /// Where the record ends in its pack. A damaged catalogue names any place: no pack is as long as that, then.
    package var end: UInt64 {
        let (end, isOver) = offset.addingReportingOverflow(UInt64(recordLength))
        return isOver ? .max : end
    }
}

package struct ChunkSize: Hashable, Sendable {
    package var chunk: ChunkID
    /// Of the plain chunk in bytes.
    package var length: UInt32

    package init(chunk: ChunkID, length: UInt32) {
        self.chunk = chunk
        self.length = length
    }
}

/// What the catalogue says of chunks that a device wants to upload.
package struct Intake: Hashable, Sendable {
    package var container: CatalogContainer
    /// Those that are not in the cloud yet.
    package var unknown: Set<ChunkID>
    /// Known ones that nothing refers to: sent again, they are to be renewed.
    package var waning: Set<ChunkID>
    /// The unknown ones would pass the account's quota.
    package var isQuotaExceeded: Bool

    package init(container: CatalogContainer, unknown: Set<ChunkID>, waning: Set<ChunkID>, isQuotaExceeded: Bool) {
        self.container = container
        self.unknown = unknown
        self.waning = waning
        self.isQuotaExceeded = isQuotaExceeded
    }
}

/// Whether a revision is whole in the cloud.
package struct Wholeness: Hashable, Sendable {
    /// The revision is known, and so are all its chunks.
    package var isKnown: Bool
    /// The packs that hold them, and up to where, in bytes from the beginning of the pack.
    package var packs: [UInt64: UInt64]

    package init(isKnown: Bool, packs: [UInt64: UInt64]) {
        self.isKnown = isKnown
        self.packs = packs
    }

    package static let unknown = Wholeness(isKnown: false, packs: [:])

    /// Bytes of the manifests that are looked through for one question about several revisions.
    package static let manifestBytes: Int64 = 64 * 1024 * 1024
}
