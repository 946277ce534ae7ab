package import UbiquityModel

/// What a pass has gathered and decided. Lives on the engine's thread only.
package final class Pass {
    /// In the order in which they were found: folders' parents come first.
    package private(set) var all: [Candidate] = []
    package private(set) var candidates: [ItemID: Candidate] = [:]
    /// The places that were looked at, each with the items that it led to.
    package private(set) var visitedPlaces: [LocalPlace: Set<ItemID>] = [:]
    private var visiting: [LocalPlace] = []
    package var visitedItems: Set<ItemID> = []
    /// What was reported later than this was not seen by this pass.
    package let seenUpTo: UInt64
    /// By the clock from which files have their times.
    let began: Timestamp
    /// Verdicts of work that led to no item.
    package var verdicts: [EngineCore.Work: EngineCore.Verdict] = [:]
    /// Rows to be written once what they describe is durable.
    package var changes = SyncedChanges()
    /// Where in `changes` an item's row is.
    private var rows: [ItemID: Int] = [:]
    /// Folders whose item is known by now: all that lies in one asks for it.
    package var parents: [InodeKey: ItemID] = [:]
    /// Manifests of contents that were read or sent, for transferring differences later.
    package var manifests: [ContentID: Manifest] = [:]
    /// What is there whose rows are about to be written, of whatever kind: made durable before.
    package var written: [LocalPlace] = []
    /// Items whose deletion the server has taken.
    package var committedDeletions: [ItemID] = []
    /// Remote states that commits answered with.
    package var answered: [RemoteItem] = []
    /// How many of them came with commits before the latest one.
    var answeredBefore = 0
    /// Folders that this pass has made, before their rows are written.
    package var localFolders: [ItemID: InodeKey] = [:]
    /// Small new files that are ready to appear with their content, by the name under which each was staged.
    package var brought: [ItemID: String] = [:]
    /// What rules hold in folders, as they were first looked at.
    var ignoreRules: [InodeKey: FolderRules] = [:]
    /// Folders that stay here, because they are ignored or by their names, or lie in such a folder.
    var unsentFolders: Set<InodeKey> = []
    /// Places that other work led to, and that have to be looked at for themselves: those of folders that were ignored and are sent from now
    /// on, and of files with rules that have to come here.
    package internal(set) var lookAlsoAt: Set<LocalPlace> = []
    /// The same of places at which something is not known yet: when it will be.
    var lookLaterAt: [LocalPlace: Duration] = [:]
    /// Where files with rules are that are about to be changed, moved or taken away.
    var rulePlaces: Set<LocalPlace> = []
    /// Items whose name is one's here that is ignored, or can be no item.
    var givingWay: Set<ItemID> = []
    /// Folders whose entries the engine changed: their times are put right in the end.
    package var foldersTouched: Set<InodeKey> = []

    /// - Parameter began: what was changed just before or since is looked at again.
    package init(seenUpTo: UInt64, began: Timestamp = Timestamp(nanoseconds: 0)) {
        self.seenUpTo = seenUpTo
        self.began = began
    }

    /// Looks at a place once; work that comes to it again waits for the same items.
    package func visit(_ place: LocalPlace, _ work: EngineCore.Work, _ look: () throws -> Void) rethrows {
        if let known = visitedPlaces[place] {
            for id in known { candidates[id]?.works.insert(work) }
            return
        }
        visitedPlaces[place] = []
        visiting.append(place)
        defer { visiting.removeLast() }
        do { try look() } catch {
            // Whoever else comes there has seen nothing.
            visitedPlaces[place] = nil
            throw error
        }
    }

    package func candidate(_ id: ItemID, _ work: EngineCore.Work) -> Candidate {
        if let place = visiting.last { visitedPlaces[place, default: []].insert(id) }
        if let known = candidates[id] {
            known.works.insert(work)
            return known
        }
        let candidate = Candidate(id: id, works: [work])
        candidates[id] = candidate
        all.append(candidate)
        return candidate
    }

    /// A candidate's row as this pass leaves it.
    package func syncedRow(_ id: ItemID) -> SyncedItem? { rows[id].map { changes.upserts[$0] } }

    /// Puts the row in the place of what this pass had for the item.
    package func setRow(_ row: SyncedItem) {
        if let index = rows[row.id] {
            changes.upserts[index] = row
        } else {
            rows[row.id] = changes.upserts.count
            changes.upserts.append(row)
        }
    }

    /// The item is not here any more.
    package func removeRow(_ id: ItemID) {
        changes.removals.append(id)
        guard let index = rows.removeValue(forKey: id) else { return }
        let last = changes.upserts.removeLast()
        guard last.id != id else { return }
        changes.upserts[index] = last
        rows[last.id] = index
    }
}
