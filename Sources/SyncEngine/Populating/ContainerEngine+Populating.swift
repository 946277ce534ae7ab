import CloudClient
import Driver
import EngineCore
import Logging
import Reconciliation
import Replica
import SystemPackage
import UbiquityModel

/// The engine's side of folders that populate themselves: their rows, and what others change in them.
extension ContainerEngine {
    /// Writes the rows of what was made on request. It may be done before those inodes are durable: they hold no content, and what a
    /// power loss takes of them is put back.
    func recordPopulated() {
        while populator.hasMade {
            let made = populator.takeMade()
            var changes = SyncedChanges()
            // What a program does to it in the same tick of the clock does not show in its times, and the driver's word of that may be lost with
            // this process before it is looked at.
            changes.upserts = made.map { one in
                var row = synchronizer.agreed(one.remote, one.state, one.place)
                row.local = LocalEvidence(unheard: one.state)
                return row
            }
            let folders = made.filter { $0.state.kind == .folder }.map(\.remote.id)
            do {
                try replica.database.apply(changes, unpopulated: folders)
            } catch {
                logger.error("what was made here is not recorded yet", metadata: ["why": "\(error)"])
                populator.restoreTimes(of: made)
                populator.notRecorded(made)
                return recordPopulatedLater()
            }
            populator.recorded(made)
            synchronizer.foldersMade(folders)
            for one in made { tracker.ignoring.noteName(one.place.name, in: one.place.folder) }
            // What cannot be read now is asked for by the next pass.
            if (try? replica.database.differing(limit: 1).isEmpty) != true { handle(.remoteChanged) }
            populator.restoreTimes(of: made)
            fetchAppeared(changes.upserts)
        }
    }

    /// Without their rows, what programs do to them would be done to new files.
    private func recordPopulatedLater() {
        guard !recordsPopulatedLater, !synchronizer.isStopping else { return }
        recordsPopulatedLater = true
        Task {
            try? await Task.sleep(for: .milliseconds(500))
            self.recordsPopulatedLater = false
            if !self.synchronizer.isStopping { self.recordPopulated() }
        }
    }

    /// Makes all items on the way to a path be here, and its own.
    /// - Returns: whether there is something at that path.
    func populate(_ path: ItemPath) -> Bool {
        var folder = replica.tree.rootKey
        for name in path.names {
            let place = LocalPlace(folder: folder, name: name)
            if let state = (try? observe(place)) ?? nil {
                folder = state.key
                continue
            }
            guard populate(place), let state = (try? observe(place)) ?? nil else { return false }
            folder = state.key
        }
        return true
    }

    /// Makes the cloud's item of that name be here, for the engine's own purposes.
    func populate(_ place: LocalPlace) -> Bool {
        guard (try? populator.populate(place.folder, place.name)) == true else { return false }
        recordPopulated()
        // The kernel may have been told that there is none.
        mount?.nameAppeared(in: place.folder, place.name)
        return true
    }

    /// Makes these items of a folder be here, and writes them down together.
    /// - Throws: what kept one of them from being made, after the others.
    func populate(_ folder: InodeKey, _ names: some Sequence<Name>) throws(Errno) {
        var made: [Name] = []
        var failure: Errno?
        for name in names {
            do throws(Errno) {
                if try populator.populate(folder, name) { made.append(name) }
            } catch {
                failure = error
            }
        }
        if !made.isEmpty {
            recordPopulated()
            for name in made { mount?.nameAppeared(in: folder, name) }
        }
        if let failure { throw failure }
    }

    /// The local folder of an item that is in the cloud only, made now with all folders above it.
    func populatedFolder(_ item: ItemID, depth: Int = 0) -> InodeKey? {
        if let key = folderKey(of: item) { return key }
        guard depth < 1000, let remote = (try? replica.database.remote(item)) ?? nil, !remote.isDeleted,
            remote.content == .folder, let parent = populatedFolder(remote.place.parent, depth: depth + 1),
            populator.item(of: parent) != nil,
            // It has become a package: what others put into the folder that it was is no part of that.
            ((try? populator.packages.package(around: parent)) ?? nil) == nil,
            populate(LocalPlace(folder: parent, name: remote.place.name))
        else { return nil }
        return folderKey(of: item)
    }

    /// Makes all that the cloud has below a folder be here, some of it at a time.
    /// - Returns: whether nothing is left to be made.
    func populateBelow(_ folder: ItemID) throws(ReplicaError) -> Bool {
        var folders = [folder]
        var left = 1000
        while let next = folders.popLast() {
            guard let key = folderKey(of: next) else { continue }
            if populator.item(of: key) == next {
                guard listing.isListed(next) else {
                    listing.want(next)
                    return false
                }
                let entries = try populator.entries(of: key)
                try? populate(key, entries.prefix(left).map(\.name))
                guard entries.count <= left else { return false }
                left -= entries.count
            }
            for row in try replica.database.syncedChildren(of: next) where row.content == .folder {
                folders.append(row.id)
            }
        }
        return !populator.hasMade
    }

    /// A folder that is about to appear: before anybody can look into it, it is known that its items are in the cloud only.
    func noteUnpopulated(_ folder: RemoteItem, _ key: InodeKey, staged: String) {
        guard folder.content == .folder, (try? replica.database.isUnpopulated(folder.id)) ?? false else { return }
        populator.folderAppeared(key, folder.id, staged: staged)
    }

    /// A folder that was here before its item was known is one like any other: all in it comes here.
    func populateAdopted(_ rows: [SyncedItem]) throws(ReplicaError) {
        var adopted: [ItemID] = []
        for row in rows where row.content == .folder {
            guard let key = row.local?.key, populator.item(of: key) != row.id,
                try replica.database.isUnpopulated(row.id)
            else { continue }
            adopted.append(row.id)
        }
        guard !adopted.isEmpty else { return }
        try replica.database.setPopulated(adopted)
        handle(.remoteChanged)
    }

    // MARK: What others change

    /// Before a page is written: items of folders that the kernel knows, and so perhaps somebody watches, get their inodes, so that what
    /// happens to them happens to something.
    /// - Returns: items that are new in unpopulated folders.
    func prepareForChanges(_ items: [RemoteItem]) throws(ReplicaError) -> [RemoteItem] {
        guard populator.hasFolders else { return [] }
        var arriving: [RemoteItem] = []
        // Written down together.
        var appeared: [LocalPlace] = []
        defer {
            recordPopulated()
            for place in appeared { mount?.nameAppeared(in: place.folder, place.name) }
        }
        for item in items where try replica.database.synced(item.id) == nil {
            let old = try replica.database.remote(item.id)
            if let old, !old.isDeleted {
                guard old.position < item.position else { continue }
                if let key = populator.key(of: old.place.parent), mount?.knows(key) ?? false,
                    (try? populator.populate(key, old.place.name)) == true
                {
                    appeared.append(LocalPlace(folder: key, name: old.place.name))
                    continue
                }
                // An announcement claims no name; with its content it does, whatever else has that here.
                if old.place == item.place, old.isAnnounced == item.isAnnounced { continue }
            }
            if !item.isDeleted, populator.key(of: item.place.parent) != nil { arriving.append(item) }
        }
        return arriving
    }

    /// After the page is written: what is new where somebody may look, or where its name is taken, or is kept here, comes here by itself.
    func noteArrived(_ items: [RemoteItem]) {
        populator.cloudChanged(in: items.map(\.place.parent))
        let known = Set(items.compactMap { populator.key(of: $0.place.parent) }).filter { mount?.knows($0) ?? false }
        // Who asks for one by its name before it comes by itself makes it, and then it does not come: it is in listings from now on.
        for key in known { mount?.listingChanged(key) }
        let ids = items.filter { item in
            guard let key = populator.key(of: item.place.parent) else { return isKept(item) }
            // Nobody would be shown it where something else has its name, which has to make room for it.
            return known.contains(key) || isKept(item) || isTaken(LocalPlace(folder: key, name: item.place.name))
        }.map(\.id)
        if !ids.isEmpty { handle(.pendingLoaded(ids, isLast: false)) }
    }

    private func isTaken(_ place: LocalPlace) -> Bool { ((try? observe(place)) ?? nil) != nil }

    /// After a full listing from a server that knew nothing of this device: all that the cloud has where somebody may look.
    func noteEverythingArrived() {
        populator.rowsRemoved()
        for key in populator.keys where mount?.knows(key) ?? false {
            let ids = ((try? populator.entries(of: key)) ?? []).map(\.id)
            if !ids.isEmpty { handle(.pendingLoaded(ids, isLast: false)) }
        }
    }

    // MARK: The first listing

    /// Requests under way at the same time: while some are written down, the server and the decoder are at the next ones.
    private static let questions = 8

    /// Asks for all folders, one after the other, those first that somebody waits for.
    func listFolders() async throws(CloudError) {
        guard !listing.isComplete else { return }
        if position == .beginning {
            // What changes from here on is told afterwards.
            let page = try await cloud.changes(container.id, since: nil, limit: 1)
            do { try replica.database.write(remote: [], position: page.head) } catch {
                throw .offline("the device's database: \(error)")
            }
            position = page.head
        }
        listing.setObstacle(nil)
        let failure = await withTaskGroup(of: CloudError?.self) { tasks in
            var running = 0
            var failure: CloudError?
            while true {
                // One more for those that somebody waits for.
                while failure == nil, running <= Self.questions,
                    let question = listing.takeQuestion(onlyWanted: running == Self.questions)
                {
                    running += 1
                    tasks.addTask { await self.ask(question) }
                }
                guard let ended = await tasks.next() else { return failure }
                running -= 1
                if let ended { failure = failure ?? ended }
            }
        }
        if let failure { throw failure }
        // A container that has just been made has nothing in it, and is told so.
        _ = try? populator.entries(of: replica.tree.rootKey)
    }

    /// - Returns: when what was answered is written down.
    private func ask(_ question: FirstListing.Question) async -> CloudError? {
        let page: ChildrenPage
        do throws(CloudError) {
            if Task.isCancelled { throw .cancelled }
            page = try await cloud.children(container.id, of: question.folders, after: question.after)
            try await learnPackages(page.items, page.manifests)
        } catch {
            listing.failed(question)
            return error
        }
        return await withCheckedContinuation { continuation in
            listingInbox.append(ListingAnswer(question: question, page: page, written: continuation))
            guard !isWritingListing else { return }
            isWritingListing = true
            Task { await self.writeListing() }
        }
    }

    /// Writes down all answers that are here, and those that come meanwhile: one transaction for many touches the scattered pages of the
    /// ids once, and these are what it takes its time for.
    private func writeListing() async {
        while !listingInbox.isEmpty {
            let answers = listingInbox
            listingInbox = []
            let replica = replica
            // Beside the engine, which asks for the next ones.
            let pool = BlockingPool.shared
            var failure: CloudError?
            do {
                try await pool.run {
                    try replica.database.write(
                        listing: answers.flatMap(\.page.items),
                        manifests: answers.reduce(into: [:]) { $0.merge($1.page.manifests) { _, new in new } },
                        complete: answers.flatMap { $0.question.folders.prefix($0.page.complete) }
                    )
                }
            } catch {
                failure = .offline("the device's database: \(error)")
            }
            for answer in answers {
                note(answer, failure)
                answer.written.resume(returning: failure)
            }
        }
        isWritingListing = false
    }

    private func note(_ answer: ListingAnswer, _ failure: CloudError?) {
        let (question, page) = (answer.question, answer.page)
        guard failure == nil else { return listing.failed(question) }
        noteRefused(page.refused)
        populator.cloudChanged(in: Set(page.items.lazy.map(\.place.parent)))
        // In the order in which a walk comes to them, which may be right behind.
        let found = page.items.filter { $0.content == .folder }
            .map { (order: CloudListing.offset(of: $0.place.name), id: $0.id) }
            .sorted { $0.order < $1.order }.map(\.id)
        listing.answered(question, complete: page.complete, last: page.last, found: found)
    }
}

/// What the cloud said of some folders, and who waits for it to be written down.
struct ListingAnswer: Sendable {
    let question: FirstListing.Question
    let page: ChildrenPage
    let written: CheckedContinuation<CloudError?, Never>
}
