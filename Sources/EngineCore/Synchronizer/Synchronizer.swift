package import Logging
import Reconciliation
package import UbiquityModel

/// One container on one device, without its I/O: performs what `EngineCore`, `ItemTracker` and `Planner` decide, by way of the device.
///
/// 1. Before the start, `scan`: what changed while nobody looked.
/// 2. Programs' changes come by `note`, what the cloud tells by `handle(.remoteChanged)` after it was written down, and the connection's
///    fate by `handle`.
/// 3. Each *pass* (`run`) takes what is ready, looks at the three trees, reads, sends, applies and records. One runs at a time; long
///    transfers go on beside it.
///
/// Not thread-safe: it belongs to one engine, and runs where that does. No I/O, clock or randomness of its own.
package final class Synchronizer<Device: EngineDevice> {
    package typealias Work = EngineCore.Work
    package typealias Verdict = EngineCore.Verdict

    package let device: Device
    package let tracker: ItemTracker<Device>
    package var core = EngineCore()
    let logger: Logger
    /// Nothing is begun any more.
    package var isStopping = false
    package private(set) var changedWhileStopping = false
    private var pendingCursor: ItemID?

    // MARK: What passes remember

    /// Large contents that have been sent and wait for the pass that commits them.
    var uploaded: [LocalPlace: ReadContent] = [:]
    /// Packages that could not be read, as they were then, because nobody knows what some of their files stand for.
    var lackingParts: [LocalPlace: LocalEvidence] = [:]
    /// How often in a row an item was not as expected when it was to be changed.
    var staleCounts: [ItemID: Int] = [:]
    /// Since when a package could not be changed because programs were using it.
    var busySince: [ItemID: Instant] = [:]
    /// Folders that another inode has gone on as: what lay in them is looked at when they have come to rest.
    var continuedFolders: Set<ItemID> = []
    var deletionsAhead: DeletionsAhead?
    var itemsCounted: CountedItems?
    /// Deletions that were sent lately, as far as they may belong to what is held.
    package var sentDeletions: [(item: ItemID, at: Instant)] = []
    /// Folders that were found at the start and are no items, as far as anybody knows.
    var strangeFolders: Set<InodeKey> = []
    /// Items that something has become of in a pass that may have looked at them before.
    var lookedAtAfterPass: [ItemID] = []
    /// Of what this device has sent, what the cloud has told of during a pass.
    private var ownInPass: [RemoteItem] = []
    var offering = Offering()
    /// Packages with changes that are not sent, and where those are of which that was told.
    var changedPackages: Set<InodeKey> = []
    var placesOfChangedPackages: [LocalPlace: InodeKey] = [:]
    /// Files in packages that have names elsewhere, too: what is written by one of those is told to the package.
    var linkedParts = LinkedParts()
    /// How often second names were put off, until another item has ended.
    var putOffAsides: [ItemID: Int] = [:]
    /// How often in a row something was refused because of what is itself about to be told: whose name it is, or what it lies in.
    var crossings: [ItemID: Int] = [:]
    /// Folders that cannot go where they are here, since the cloud still has that in them.
    var circling: Set<ItemID> = []
    /// Whose names new folders were refused, which are deleted here.
    var nameHolders: [ItemID: ItemID] = [:]
    package var isRunningPass = false
    /// Passes so far, and for each piece of work the last one that finished it; noted while `notesFinished`.
    package var passCount = 0
    package var finishedIn: [Work: Int] = [:]
    package var notesFinished = false
    /// The cloud does not know an item of which it has told: with the next connection everything is compared.
    package internal(set) var isCloudRestored = false
    /// Changes of others that wait for a program to close the file.
    package var behindWriters: Set<Work> = []
    /// What passes put there whose rows could not be written.
    var unrecorded: Set<LocalPlace> = []
    /// Folders that a scan could not read, and those of which nobody has told what lies in them: the next pass that meets one looks.
    var foldersToScan: Set<InodeKey> = []
    /// Those that were scanned, until all is heard that programs did meanwhile.
    var scannedFolders: Set<InodeKey> = []
    /// Work that waits for a writer to close the file.
    var waitingForClose: [InodeKey: Set<Work>] = [:]
    /// The same of packages in which a file is open for writing.
    var waitingForPackage: [LocalPlace: Set<Work>] = [:]
    package var deletionGuard = DeletionGuard()
    /// What the log said before programs came: what is there all the same was announced, and not done before the process died.
    package var formerDeletions: Set<DeletionEntry> = []
    package var heldDeletions: Set<ItemID> = []
    var heldMarks = HeldMarks()
    /// When deletions were held last.
    var heldAt: Instant?
    /// Deletions of which somebody has said that they may go, and which are not sent yet.
    package var confirmedDeletions: Set<ItemID> = []
    /// What is held may go once this folder is gone as well: it was told while `rm` was still removing it.
    var awaitedRemoval: ItemPath?
    /// Deletions that `deletionGuard` has counted and the cloud has not taken yet.
    var admittedDeletions: Set<ItemID> = []
    /// Deletions that were sent and not answered: sent again, they are the same ones. Others may have brought the items back since.
    /// As in the state database.
    var unansweredDeletions: [ItemID: SentDeletion] = [:]
    /// How often in a row a name was refused because of an item of which the cloud has told nothing.
    var untoldHolders: [ItemID: (rival: ItemID, count: Int)] = [:]
    /// How often the cloud has kept a folder as not empty in which nothing is known to lie.
    var unexplainedFolders: [ItemID: Int] = [:]

    package init(device: Device, logger: Logger) {
        self.device = device
        self.logger = logger
        tracker = ItemTracker(view: device)
    }

    // MARK: Driving the core

    package func handle(_ event: EngineCore.Event) {
        guard !isStopping else { return }
        for effect in core.handle(event, at: device.now) {
            if effect == .loadPending { loadPending() } else { device.perform(effect) }
        }
    }

    private func loadPending() {
        do {
            let ids = try device.differing(after: pendingCursor, limit: EngineCore.passLimit)
            pendingCursor = ids.count < EngineCore.passLimit ? nil : ids.last
            handle(.pendingLoaded(ids, isLast: ids.count < EngineCore.passLimit))
        } catch {
            logger.error("the device's database cannot be read", metadata: ["why": "\(error)"])
            // From the start, when it can be.
            pendingCursor = nil
            handle(.pendingFailed)
        }
    }

    /// The cloud tells of these items, and that is about to be written down.
    package func remoteArrives(_ items: [RemoteItem]) throws {
        tracker.noteArriving(items)
        try rememberAnnouncements(among: items)
    }

    /// What this device has announced and knows nothing of, since its disk is an older one, is written down as sent before it is known as the
    /// cloud's. Else, in a folder that is made on request, it would stay there if this ends before it is taken back, and whoever asks for its
    /// name would get a placeholder of what nobody has.
    private func rememberAnnouncements(among items: [RemoteItem]) throws {
        var news: [(item: ItemID, sent: SentRevision)] = []
        for item in items where item.isAnnounced && !item.isDeleted && item.author == device.deviceName {
            // What is sent at this moment, or was just answered, is not forgotten.
            guard let revision = item.content.revision, tracker.sending[item.id] == nil,
                tracker.newItems.key(of: item.id) == nil, try device.synced(item.id) == nil,
                try device.remote(item.id).map({ $0.position < item.position }) ?? true
            else { continue }
            news.append((item.id, SentRevision(revision: revision, content: nil, isDoubtful: true)))
        }
        guard !news.isEmpty else { return }
        try device.write(sending: news)
        for (item, sent) in news { tracker.sending[item] = sent }
    }

    /// The cloud's state of these items has been written down.
    package func remoteWritten(_ items: [RemoteItem]) {
        for work in tracker.noteRemote(items) { handle(.woken(work)) }
        // Why it could not be done may be over. Also what a pass has at this moment, and is about to park.
        if core.holdsUp || isRunningPass { for item in items { handle(.woken(.item(item.id))) } }
        if !items.isEmpty { handle(.remoteChanged) }
        // What this device has sent, unanswered, does not wait in the cloud until a program asks for it: here it may have gone.
        let own = items.filter(isOwn)
        if isRunningPass {
            ownInPass += own
        } else if !own.isEmpty {
            handle(.pendingLoaded(own.map(\.id), isLast: false))
        }
        noteRemoteRules(items)
    }

    /// What a pass has sent comes back by the feed while it waits for the answer: only what it has not settled is looked at.
    func takeOwnInPass() -> [ItemID] {
        defer { ownInPass = [] }
        return ownInPass.filter(isOwn).map(\.id)
    }

    /// Folders that were in the cloud only have been made here: what was parked since there was no such folder may go on. Not if very much is
    /// parked, which is asked about each time that a program walks into a folder: that goes on with the next start.
    package func foldersMade(_ folders: [ItemID]) {
        guard !folders.isEmpty, core.parkedCount > 0, core.parkedCount < 1_000 else { return }
        let made = Set(folders)
        for case .item(let item) in core.parkedWork.sorted() {
            guard let remote = (try? device.remote(item)) ?? nil, made.contains(remote.place.parent) else { continue }
            handle(.woken(.item(item)))
        }
    }

    private func isOwn(_ remote: RemoteItem) -> Bool {
        tracker.newItems.key(of: remote.id) != nil || tracker.replacingLinks.contains(remote.id)
            || device.isLogged(.item(remote.id)) || remote.isAnnounced && remote.author == device.deviceName
    }

    // MARK: What programs do

    package func note(_ change: LocalChange) {
        if isStopping { changedWhileStopping = true }
        // Unless it is an item's, whose deletion is told of, nobody asks for what is in the log of it.
        if let replaced = change.replaced, device.isLogged(.inode(replaced)) { tracker.freshDeletions.insert(replaced) }
        if isOfPackage(change) { return }
        // Somebody has given the file a further name: of nothing but a package that is to be found out here.
        if change.aspects.isEmpty { return }
        logReplacingRename(change)
        tracker.ignoring.note(change)
        let place = LocalPlace(folder: change.parent, name: change.name)
        tracker.changeCount += 1
        tracker.changedAt[place] = tracker.changeCount
        tracker.aspects[place, default: []].formUnion(change.aspects)
        if change.aspects.contains(.content) { tracker.editedAt[place] = device.wallClock }
        tracker.unwitnessed.remove(place)
        tracker.vanished.remove(place)
        if change.aspects.contains(.entry), let key = change.key {
            if device.isLogged(.inode(key)) {
                tracker.freshDeletions.insert(key)
                // Of what item it was the file may not be written down yet.
                tracker.vanished.insert(place)
                lookAtMoved(key, deletedAt: place)
                wakeWhoWaits(forContentOf: key)
            } else if !change.isFolder, change.mayHaveOtherNames {
                if !isStill(key, at: place) {
                    tracker.unnamed[place, default: []].insert(key)
                } else {
                    tracker.unnamed[place]?.remove(key)
                }
            }
        }
        if let replaced = change.replaced {
            if !device.isLogged(.inode(replaced)), !isExchange(change, with: replaced) {
                tracker.unnamed[place, default: []].insert(replaced)
            }
            // Of one that has further names, and had not come here, nobody waits for what becomes of the others.
            if device.isLogged(.inode(replaced)) || tracker.moves.keys(at: place).contains(replaced) {
                lookAtMoved(replaced, deletedAt: place)
            }
        }
        if let from = change.movedFrom {
            let old = LocalPlace(folder: from.parent, name: from.name)
            noteLeft(old, change.key, for: place)
            if change.isFolder, let key = change.key {
                noteLeftUnread(key, from: from.parent)
                if isLocalOnly(old), !isLocalOnly(place) { noteReturned(key) }
            }
        }
        storeUnwitnessed()
        if change.aspects.contains(.entry) { lookBeside(place) }
        let isOpen = change.key.map { device.hasWriter($0) } ?? false
        handle(.changed(place, isOpen: isOpen && !change.isFolder))
        tellOtherNames(of: change)
    }

    private func isExchange(_ change: LocalChange, with other: InodeKey) -> Bool {
        guard let from = change.movedFrom else { return false }
        return isStill(other, at: LocalPlace(folder: from.parent, name: from.name))
    }

    func tellOtherNames(of change: LocalChange) {
        guard !change.isFolder, change.mayHaveOtherNames, change.movedFrom == nil, let key = change.key else { return }
        let place = LocalPlace(folder: change.parent, name: change.name)
        let aspects = change.aspects.subtracting(.entry)
        noteOtherNames(of: key, except: place, aspects, isOpen: device.hasWriter(key))
    }

    /// It was moved here before it was deleted, and that is not sent: its name then, where it is missed, has been looked at.
    private func lookAtMoved(_ key: InodeKey, deletedAt place: LocalPlace) {
        guard let rows = try? device.synced(key: key) else { return }
        if rows.isEmpty, tracker.moves[key] == place {
            // It was saved before it was sent: nobody asks any more where it went. Offline, there may be one a second for weeks.
            tracker.moves[key] = nil
        }
        for row in rows {
            guard row.place.name != place.name || tracker.folderKey(of: row.place.parent) != place.folder else {
                continue
            }
            // It may be parked, since nobody had its content.
            handle(.woken(.item(row.id)))
            handle(.pendingLoaded([row.id], isLast: false))
        }
    }

    private func noteLeft(_ old: LocalPlace, _ key: InodeKey?, for place: LocalPlace) {
        tracker.changedAt[old] = tracker.changeCount
        // What was written under the old name goes along.
        tracker.aspects[place, default: []].formUnion(tracker.aspects[old] ?? [])
        if tracker.unwitnessed.remove(old) { tracker.unwitnessed.insert(place) }
        if let edited = tracker.editedAt[old] { tracker.editedAt[place] = edited }
        tracker.aspects[old, default: []].formUnion(.entry)
        tracker.vanished.insert(old)
        if let key {
            tracker.moves[key] = place
            // It has not lost that name, but exchanged it.
            tracker.unnamed[old]?.remove(key)
        }
        handle(.changed(old, isOpen: false))
        lookBeside(old)
    }

    /// A database has gone, or something else is there: what it had as shared memory may be a file like any other.
    func lookBeside(_ place: LocalPlace) {
        if let left = tracker.takeSharedMemory(beside: place) { handle(.changed(left, isOpen: false)) }
    }

    private func isLocalOnly(_ place: LocalPlace) -> Bool {
        device.path(of: place).flatMap { tracker.localOnlyReason(place, $0) } != nil
    }

    /// A folder is back from where nothing is sent, perhaps before it had left the cloud: what was done in it there, and what others did in
    /// it, counts from now on.
    private func noteReturned(_ folder: InodeKey) {
        foldersToScan.insert(folder)
        for case .item(let item) in core.parkedWork.sorted() { handle(.woken(.item(item))) }
        // Somebody is being asked about the deletion of what is here again.
        if !heldDeletions.isEmpty { handle(.pendingLoaded(heldDeletions.sorted(), isLast: false)) }
    }

    /// A rename over a synced name ends the item that the renamed file was: the name goes on with the target's item.
    private func logReplacingRename(_ change: LocalChange) {
        guard change.replaced != nil, let from = change.movedFrom, let key = change.key else { return }
        // After the items are in the log.
        defer { try? device.unlog([.replacing(key)]) }
        guard !change.isFolder, let parent = (try? tracker.knownItem(of: change.parent)) ?? nil,
            let target =
                (try? tracker.rows(
                    at: LocalPlace(folder: change.parent, name: change.name),
                    in: parent,
                    nil
                ))?.first?.id
        else { return }
        for row in (try? device.synced(key: key)) ?? [] where row.id != target && row.place.name == from.name {
            device.log(.item(row.id))
        }
        // On its way to the cloud at this moment, under a name that is gone by now.
        if let creating = device.itemBeingCreated(key), creating != target {
            let place = LocalPlace(folder: change.parent, name: change.name)
            if ((try? device.observe(place)) ?? nil)?.kind == .symlink {
                tracker.replacingLinks.insert(creating)
            } else {
                device.log(.item(creating))
            }
        }
    }

    /// A file with several names is several items: each is looked at.
    func noteOtherNames(
        of key: InodeKey,
        except place: LocalPlace,
        _ changed: LocalChange.Aspects,
        isOpen: Bool
    ) {
        tracker.linkedChanges[key] = tracker.changeCount
        guard let rows = try? device.synced(key: key) else { return }
        for row in rows {
            guard let folder = tracker.folderKey(of: row.place.parent) else { continue }
            let other = LocalPlace(folder: folder, name: row.place.name)
            guard other != place else { continue }
            // A new name changes the inode's change time and nothing else.
            tracker.changedAt[other] = tracker.changeCount
            tracker.aspects[other, default: []].formUnion(changed.union(.attributes))
            handle(.changed(other, isOpen: isOpen))
        }
        tellPackages(with: key, except: place, changed)
    }

    /// The engine itself may have found bytes there that nobody told of.
    package func noteWritten(_ place: LocalPlace) {
        tracker.changeCount += 1
        tracker.changedAt[place] = tracker.changeCount
        tracker.aspects[place, default: []].formUnion(.content)
        tracker.unwitnessed.remove(place)
        handle(.changed(place, isOpen: false))
    }

    /// The last writable handle of a file is closed.
    package func writerClosed(_ key: InodeKey) {
        for work in (waitingForClose.removeValue(forKey: key) ?? []).sorted() { handle(.woken(work)) }
    }

    /// Work goes on when the file's last writer has closed it.
    package func wait(_ works: Set<Work>, forWriterOf key: InodeKey) {
        waitingForClose[key, default: []].formUnion(works)
        behindWriters.formUnion(works)
    }

    /// A large file's content has been sent (`content`), or could not be.
    package func transferEnded(
        _ item: ItemID,
        at place: LocalPlace,
        _ works: Set<Work>,
        content: ReadContent?,
        _ verdict: Verdict
    ) {
        if let content { uploaded[place] = content }
        transferEnded(item, works, verdict)
    }

    /// A transfer beside the passes has ended.
    package func transferEnded(_ item: ItemID, _ works: Set<Work>, _ verdict: Verdict) {
        tracker.transferring.remove(item)
        tracker.uploads.end(item)
        tracker.downloads.end(item)
        // Each piece of work that led to the item waits for this, and the first one has a pass of its own. That is the place's: its pass
        // forgets that the content was changed, where the item's leaves it to be read once more.
        for work in works.sorted(by: >) { handle(.transferEnded(work, verdict)) }
        admitTransfers()
    }

    /// Whose turn it is to be transferred.
    func admitTransfers() {
        for work in tracker.uploads.next() + tracker.downloads.next() { handle(.woken(work)) }
    }

    // MARK: Items and places

    /// For people: the path of an item by the remote tree, as far as it is known.
    package func remotePath(of item: ItemID) -> ItemPath {
        var names = [Name]()
        var current = item
        while current != .root, names.count < 1000 {
            guard let row = (try? device.remote(current)) ?? nil else { break }
            names.append(row.place.name)
            current = row.place.parent
        }
        return ItemPath(names.reversed())
    }

    /// It has come, has gone, or is another one now.
    func wakeWhoWaits(forContentOf key: InodeKey) {
        for work in (tracker.waitingForContent.removeValue(forKey: key) ?? []).sorted() { handle(.woken(work)) }
    }

    func noteProblem(_ candidate: Candidate, _ reason: String) {
        device.noteProblem(candidate.id, at: candidate.found?.place, reason)
    }
}
