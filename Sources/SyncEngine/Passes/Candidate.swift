import EngineCore
import Reconciliation
import Replica
import UbiquityModel

/// One item in a pass: what the three trees say of it, and what becomes of it. Lives on the engine's thread only.
final class Candidate {
    let id: ItemID
    /// The work that led here: all of it gets this candidate's verdict.
    var works: Set<ContainerEngine.Work>
    /// Where it was found in the backing tree.
    var found: Found?
    var synced: SyncedItem?
    var remote: RemoteItem?
    /// The inode that the item was, when it is another now.
    var formerKey: InodeKey?
    /// For a new local item: the cloud's item of the same name.
    var rival: RemoteItem?
    /// An absence is proven to be a deletion: logged, or seen happening.
    var deletionIsProven = false
    /// What was read of its content.
    var read: ReadContent?
    var verdict: ContainerEngine.Verdict?
    /// What is to be done in the backing tree, in order.
    var applies: [ApplyStep] = []

    enum ApplyStep {
        case planned(Apply)
        /// The local item makes room for the one that had the name first.
        case aside
    }

    struct Found {
        var place: LocalPlace
        var parent: ItemID
        var state: LocalState
        var content: LocalContent
        var attributes: ItemAttributes
        var timeWasSet: Bool
    }

    init(id: ItemID, works: Set<ContainerEngine.Work>) {
        self.id = id
        self.works = works
    }

    /// What the planner sees of the local tree.
    var local: LocalItem? {
        guard let found else { return nil }
        let content = read.map { LocalContent.read($0.content, size: $0.state.size) } ?? found.content
        return LocalItem(
            place: Place(parent: found.parent, name: found.place.name),
            content: content,
            attributes: found.attributes,
            timeWasSet: found.timeWasSet
        )
    }

    /// It made room for another and has not moved on yet.
    var isInTransit: Bool {
        guard let found, let remote else { return false }
        return TransitionalName.matches(found.place.name) && !TransitionalName.matches(remote.place.name)
    }

    var agreed: AgreedItem? {
        synced.map { AgreedItem(place: $0.place, content: $0.content, attributes: $0.attributes) }
    }
}

/// What a pass has gathered and decided. Lives on the engine's thread only.
final class Pass {
    /// In the order in which they were found: folders' parents come first.
    private(set) var order: [ItemID] = []
    private(set) var candidates: [ItemID: Candidate] = [:]
    /// The places that were looked at, each with the items that it led to.
    private(set) var visitedPlaces: [LocalPlace: Set<ItemID>] = [:]
    private var visiting: [LocalPlace] = []
    var visitedItems: Set<ItemID> = []
    /// What was reported later than this was not seen by this pass.
    let seenUpTo: UInt64
    /// Verdicts of work that led to no item.
    var verdicts: [ContainerEngine.Work: ContainerEngine.Verdict] = [:]
    /// Rows to be written once what they describe is durable.
    var changes = SyncedChanges()
    /// Manifests of contents that were read or sent, for transferring differences later.
    var manifests: [ContentID: Manifest] = [:]
    /// Local files whose rows are about to be written: made durable before.
    var written: [LocalPlace] = []
    /// Items whose deletion the server has taken.
    var committedDeletions: [ItemID] = []
    /// Remote states that commits answered with.
    var answered: [RemoteItem] = []
    /// Folders that this pass has made, before their rows are written.
    var localFolders: [ItemID: InodeKey] = [:]
    /// Folders whose entries the engine changed: their times are put right in the end.
    var foldersTouched: Set<InodeKey> = []

    init(seenUpTo: UInt64) { self.seenUpTo = seenUpTo }

    /// Looks at a place once; work that comes to it again waits for the same items.
    func visit(_ place: LocalPlace, _ work: ContainerEngine.Work, _ look: () throws -> Void) rethrows {
        if let known = visitedPlaces[place] {
            for id in known { candidates[id]?.works.insert(work) }
            return
        }
        visitedPlaces[place] = []
        visiting.append(place)
        defer { visiting.removeLast() }
        try look()
    }

    func candidate(_ id: ItemID, _ work: ContainerEngine.Work) -> Candidate {
        if let place = visiting.last { visitedPlaces[place, default: []].insert(id) }
        if let known = candidates[id] {
            known.works.insert(work)
            return known
        }
        let candidate = Candidate(id: id, works: [work])
        candidates[id] = candidate
        order.append(id)
        return candidate
    }

    /// A candidate's row as this pass leaves it.
    func syncedRow(_ id: ItemID) -> SyncedItem? { changes.upserts.last { $0.id == id } }

    var all: [Candidate] { order.compactMap { candidates[$0] } }
}

/// What one candidate asks of the server.
struct PlannedSend {
    var candidate: Candidate
    var actions: [Send]
    /// Name, size and times of a large new file go ahead of its content.
    var isAnnouncement = false
}
