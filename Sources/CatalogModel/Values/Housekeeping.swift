package import UbiquityModel

/// What a step of a walk through all containers did, and where the next one goes on; `nil` at the end.
package struct HousekeepingPage<Position: Hashable & Sendable>: Hashable, Sendable {
    /// So many versions, or chunks, are kept no longer.
    package var discarded = 0
    /// Something cannot be read on which it depends what is kept: in that container nothing goes.
    package var isDamaged = false
    package var next: Position?

    package init() {}
}

/// The last item of a step.
package struct ItemPosition: Hashable, Sendable {
    /// Of the container in the catalogue.
    package var container: Int64
    package var item: ItemID

    package init(container: Int64, item: ItemID) {
        self.container = container
        self.item = item
    }
}

/// The last deleted item of a step.
package struct TombstonePosition: Hashable, Sendable {
    package var container: Int64
    package var deleted: DeletedPosition

    package init(container: Int64, deleted: DeletedPosition) {
        self.container = container
        self.deleted = deleted
    }
}

/// The last chunk of a step.
package struct ChunkPosition: Hashable, Sendable {
    package var container: Int64
    package var chunk: ChunkID

    package init(container: Int64, chunk: ChunkID) {
        self.container = container
        self.chunk = chunk
    }
}

/// How much one step looks at.
package enum HousekeepingSizes {
    package static let items = 200
    /// Candidates that are compared at once with everything that is referred to.
    package static let candidates = 250_000
}

/// When a chunk that nothing refers to goes (architecture section 6).
///
/// Such a chunk is a *candidate*. Up to a moment devices are told that it is here; from then on they are told that it is missing, and send
/// it again. It is collected when nobody can rely on such an answer any more. A commit that names it ends that it is a candidate.
package enum ChunkCollection {
    /// For so long a device may rely on being told that a chunk is here.
    package static let answerLifetime: Duration = .seconds(24 * 3_600)
    /// What was uploaded, and never committed, is offered for so long: transfers resume. A file of many gigabytes may take days over a slow
    /// link, on a machine that is not always on; until then it counts in the quota.
    package static let uploadLifetime: Duration = .seconds(30 * 24 * 3_600)
}

/// A pack that chunks were collected from, or moved out of.
package struct PackUse: Hashable, Sendable {
    package var pack: UInt64
    /// Of the records that the catalogue leads to.
    package var liveBytes: Int64
    /// Nothing leads to it from then on; `nil` as long as something does.
    package var emptied: Timestamp?
    /// Some of its chunks are still referred to, and lie in another pack now.
    package var isMoved: Bool

    package init(pack: UInt64, liveBytes: Int64, emptied: Timestamp?, isMoved: Bool) {
        self.pack = pack
        self.liveBytes = liveBytes
        self.emptied = emptied
        self.isMoved = isMoved
    }
}

/// A chunk of any container, for whoever moves it from one pack to another.
package struct PackedChunk: Hashable, Sendable {
    package var container: Int64
    package var record: ChunkRecord

    package init(container: Int64, record: ChunkRecord) {
        self.container = container
        self.record = record
    }
}
