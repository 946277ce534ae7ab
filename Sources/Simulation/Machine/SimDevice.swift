import CatalogModel
import EngineCore
import Logging
import Reconciliation
import UbiquityModel

/// Why an act of a simulated device failed.
enum SimFailure: Error {
    /// The process has been killed meanwhile.
    case dead
    case offline
    case quota
    /// It has been removed from the account, or the server was restored and never knew it.
    case refused
}

/// The service's process on a simulated device: what the synchronizer sees and does. Its memory goes with it, the machine stays.
final class SimDevice {
    let machine: SimMachine
    var isDead = false
    let folders = FolderIndex(root: SimDisk.key(SimDisk.root))
    /// It knows this object, which knows it, until `end`.
    private var own: Synchronizer<SimDevice>?
    var synchronizer: Synchronizer<SimDevice> {
        if let own { return own }
        let made = Synchronizer(device: self, logger: machine.world.logger(machine.name))
        own = made
        return made
    }
    private let started: Duration
    private var timer: UInt64 = 0
    private(set) var creating: [InodeKey: ItemID] = [:]
    /// What this device is just sending as new.
    private(set) var ownItems: Set<ItemID> = []
    /// Folders that populate themselves.
    var unpopulated: [InodeKey: ItemID] = [:]
    /// Of those that are staged: which inodes their items have if they are not published after all.
    var formerFolders: [InodeKey: InodeKey] = [:]
    var made: [Made] = []
    /// What is being published, under which name it is staged until then.
    var appearing: [ItemID: String] = [:]
    /// What programs did and the engine has not been told of.
    private var changes: [LocalChange] = []
    private var drainIsDue = false
    private var stagedCount = 0
    /// Each connection has its number; 0: there is none.
    private(set) var connection: UInt64 = 0
    private var connections: UInt64 = 0
    private var isFollowing = false
    private var isPulling = false
    /// Which folders are packages, as far as this process knows.
    var marks = PackageMarks(rules: PackageRules(extensions: [SimDevice.packageExtension]))
    /// The files of packages that it has looked at.
    var packageFiles: [InodeKey: [InodeKey]] = [:]
    var waitingForClaims: [(path: ItemPath, works: Set<EngineCore.Work>)] = []
    /// The log's end after the last commit that was answered, until that is written down.
    var answered: LogPosition?
    /// Files that became whole while a pass ran.
    private var filled: [InodeKey: LocalEvidence] = [:]

    var world: SimWorld { machine.world }

    init(machine: SimMachine) {
        self.machine = machine
        started = machine.world.now
    }

    /// What has to be known before programs come.
    func open() {
        for row in machine.database.synced.values where row.content.kind == .package {
            if let key = row.local?.key { marks.mark(key) }
        }
        loadUnpopulated()
        synchronizer.formerDeletions = machine.database.deletions
    }

    func start() {
        recordMade()
        synchronizer.heldDeletions = machine.database.held
        synchronizer.confirmedDeletions = machine.database.confirmed
        synchronizer.load(changedPackages: machine.database.changedPackages)
        synchronizer.tracker.sending = machine.database.sending
        synchronizer.tracker.sentLinks = machine.database.sentLinks
        synchronizer.load(sentDeletions: machine.database.sentDeletions)
        synchronizer.load(unwitnessed: Array(machine.database.unwitnessed))
        machine.database.deletions = machine.database.deletions.filter { entry in
            switch entry {
            case .inode(let key), .replacing(let key): !machine.database.synced(key: key).isEmpty
            case .item: true
            }
        }
        let wasClean = machine.database.wasStoppedCleanly
        if wasClean {
            machine.database.wasStoppedCleanly = false
            machine.makeDatabaseDurable()
        }
        do { try synchronizer.scan(isAfterCleanStop: wasClean) } catch { world.fail("the scan failed: \(error)") }
        if wasClean, !synchronizer.tracker.unwitnessed.isEmpty { machine.makeDatabaseDurable() }
        synchronizer.handle(.started)
        for row in machine.database.synced.values.sorted(by: { $0.id < $1.id }) where row.content.kind == .package {
            referToNewRevision(row, machine.database.remote[row.id])
        }
    }

    /// Nothing of its world happens any more.
    func end() { own = nil }

    // MARK: What programs did

    func report(_ change: LocalChange) {
        if change.replaced != nil, let key = change.key { machine.database.deletions.insert(.replacing(key)) }
        changes.append(change)
        guard !drainIsDue else { return }
        drainIsDue = true
        later(1_000...1_500) { $0.drain() }
    }

    /// A name is about to go: see `EngineHost.aboutToDelete`.
    func aboutToDelete(_ number: UInt64, _ place: LocalPlace) {
        let key = SimDisk.key(number)
        if machine.disk[number].map({ $0.links == 1 }) ?? true || !world.settings.has(.hardLinks) {
            machine.database.deletions.insert(.inode(key))
        } else if let parent = (try? synchronizer.tracker.knownItem(of: place.folder)) ?? nil,
            let row = machine.database.synced(at: Place(parent: parent, name: place.name)).first
        {
            machine.database.deletions.insert(.item(row.id))
        }
        if let item = creating[key] { machine.database.deletions.insert(.item(item)) }
    }

    func writerClosed(_ key: InodeKey) {
        later(10...100) { device in
            device.drain()
            device.synchronizer.writerClosed(key)
        }
    }

    func drain() {
        drainIsDue = false
        recordMade()
        let changes = changes
        self.changes = []
        for change in changes { synchronizer.note(change) }
        if !synchronizer.isRunningPass { synchronizer.tracker.withdraw() }
    }

    var isDrained: Bool { changes.isEmpty && made.isEmpty }

    /// As the device service: then what differs at the next start was changed while nothing ran.
    var hasNothingToSend: Bool {
        drain()
        let left = synchronizer.core.unfinished + synchronizer.core.parkedWork
        return !synchronizer.changedWhileStopping && synchronizer.heldDeletions.isEmpty
            && left.allSatisfy { if case .item = $0 { true } else { false } }
    }

    // MARK: Time

    /// Unless the process is dead by then.
    func later(_ range: ClosedRange<Int>, _ body: @escaping (SimDevice) -> Void) {
        world.later(range) { [self] in if !isDead { body(self) } }
    }

    private func runPass(_ works: [EngineCore.Work]) {
        synchronizer.isRunningPass = true
        world.task { [self] in
            drain()
            filled = [:]
            packageFiles = [:]
            world.note("\(machine.name) looks at \(works.map(shown).joined(separator: ", "))")
            await synchronizer.run(works)
            world.count(.passes)
        }
    }

    private func shown(_ work: EngineCore.Work) -> String {
        switch work {
        case .place(let place): path(of: place)?.description ?? "?/\(place.name)"
        case .item(let item): "item \(synchronizer.remotePath(of: item))"
        }
    }

    // MARK: The connection

    func loseConnection() {
        guard connection != 0 else { return }
        connection = 0
        isFollowing = false
        world.count(.connectionsLost)
        synchronizer.handle(.connectionLost(jitter: Double(world.random.below(1000)) / 1000))
    }

    private func connect() {
        connections += 1
        connection = connections
        let number = connection
        world.task { [self] in
            do {
                try await openSession()
                guard number == connection else { return }
                synchronizer.handle(.connected)
                try await compareIfRestored(number)
                while try await pull(number) {}
                guard number == connection else { return }
                synchronizer.handle(.caughtUp)
                isFollowing = true
                cloudChanged()
            } catch {
                if number == connection { noteLost(error) }
            }
        }
    }

    /// Each renews what shows that this disk has no past that it does not know of.
    private func openSession() async throws {
        let presented = machine.proposeToken()
        let fresh = machine.freshCredentials()
        let next = try await request { try $0.openSession(presented, fresh: fresh) }
        machine.store(next)
    }

    func noteLost(_ error: any Error) {
        guard !isDead else { return }
        guard case SimFailure.refused = error else { return loseConnection() }
        connection = 0
        isFollowing = false
        synchronizer.handle(.connectionRefused)
        machine.joinAgain()
    }

    /// The cloud has something that this device has not seen yet.
    func cloudChanged() {
        guard !isDead, isFollowing, !isPulling else { return }
        isPulling = true
        let number = connection
        world.task { [self] in
            do { while try await pull(number) {} } catch { if number == connection { noteLost(error) } }
            isPulling = false
            if !isDead, isFollowing, number == connection, position != world.cloud.head { cloudChanged() }
        }
    }

    private var position: LogPosition { machine.database.position ?? .beginning }

    /// - Returns: whether more is there.
    private func pull(_ number: UInt64) async throws -> Bool {
        let since = position
        let page = try await page(since: since)
        guard number == connection, !isDead else { return false }
        // As the device service, which cannot go on without its database.
        if machine.isDiskFull { throw SimFailure.offline }
        if page.isUnknownPosition {
            // As the device service, which ends the connection for that, unless it has just begun.
            guard !isFollowing else { throw SimFailure.offline }
            try await compare(number)
            return true
        }
        let arriving = prepareForChanges(page.items)
        try synchronizer.remoteArrives(page.items)
        machine.database.write(remote: page.items)
        machine.database.manifests.merge(page.manifests) { known, _ in known }
        machine.database.position = page.position
        if page.more { machine.database.noteHead(page.head) }
        synchronizer.remoteWritten(page.items)
        noteArrived(arriving)
        return page.more
    }

    /// Its log may end between what the feed has told and what commits were answered, or pages that were cut off had still to tell, or have
    /// gone on otherwise from there.
    private func compareIfRestored(_ number: UInt64) async throws {
        if machine.database.isComparing || synchronizer.isCloudRestored { return try await compare(number) }
        var answered = machine.database.answered
        // What a pass that is still running was answered is not written down yet.
        if let unwritten = self.answered, unwritten.counter > answered?.counter ?? 0 { answered = unwritten }
        guard let answered, answered.counter > position.counter else { return }
        let isUnknown = try await page(since: answered).isUnknownPosition
        guard number == connection, !isDead else { throw SimFailure.offline }
        if isUnknown { try await compare(number) }
    }

    private func compare(_ number: UInt64) async throws {
        while synchronizer.isRunningPass { try await pause(100...1_000) }
        guard number == connection else { throw SimFailure.offline }
        _ = try await synchronizer.compareWithRestored { since in
            let page = try await self.page(since: since ?? .beginning)
            guard number == self.connection, !self.isDead else { throw SimFailure.offline }
            return ListedPage(
                items: page.items,
                manifests: page.manifests,
                position: page.position,
                more: page.more
            )
        }
        // Of the server as it was.
        answered = nil
        noteEverythingArrived()
    }

    private func page(since: LogPosition) async throws -> SimCloud.Page {
        try await request { cloud in try cloud.changes(for: self.machine.credentials, since: since) }
    }

    /// A question to the server: it may be lost on the way there or on the way back.
    func request<Answer>(_ body: (inout SimCloud) throws -> Answer) async throws -> Answer {
        let number = connection
        try await pause(300...8_000)
        guard machine.isReachable, number != 0, number == connection else { throw SimFailure.offline }
        if world.happens(.requests) { throw SimFailure.offline }
        let answer: Result<Answer, any Error>
        do {
            answer = .success(try body(&world.cloud))
        } catch CatalogError.revoked, CatalogError.unauthorized {
            answer = .failure(SimFailure.refused)
        }
        world.cloudMayHaveChanged()
        try await pause(300...8_000)
        guard machine.isReachable, !machine.isDeaf, number == connection else { throw SimFailure.offline }
        if world.happens(.answers) { throw SimFailure.offline }
        return try answer.get()
    }

    /// Time for a disk, or a network.
    func pause(_ range: ClosedRange<Int>) async throws {
        if isDead { throw SimFailure.dead }
        await world.pause(range)
        if isDead { throw SimFailure.dead }
    }

    // MARK: Contents

    /// What became of bringing a content here.
    enum Fill: Equatable {
        case here, failed
        case absent(ContentAbsence)
    }

    /// Brings a dataless file's content here, for a program or the engine.
    func fill(_ number: UInt64, _ done: @escaping (Bool) -> Void) {
        let key = SimDisk.key(number)
        world.task { [self] in
            let newsCount = synchronizer.tracker.newsCount
            let outcome = await fillOne(number)
            if case .absent(let absence) = outcome {
                let waiting = synchronizer.tracker.noteUndeliverable(key, absence: absence, askedAt: newsCount)
                for work in waiting { synchronizer.handle(.woken(work)) }
            }
            synchronizer.tracker.fetching.remove(key)
            if !isDead { done(outcome == .here) }
        }
    }

    func fillOne(_ number: UInt64) async -> Fill {
        guard let placeholder = machine.disk[number]?.placeholder else {
            return machine.disk[number] != nil ? .here : .failed
        }
        do {
            let former = placeholder.offset == nil ? nil : placeholder.part(of: formerTokens(of: placeholder.revision))
            let (tokens, absence) = try await request { cloud throws -> ([UInt64]?, ContentAbsence?) in
                // By its chunks, which others may have brought back.
                if let former, try cloud.missing(former.map(SimContent.chunk)).isEmpty { return (former, nil) }
                let tokens = placeholder.part(of: try cloud.tokens(of: placeholder.revision))
                return (tokens, tokens == nil ? cloud.absence(of: placeholder.revision) : nil)
            }
            guard let inode = machine.disk[number], inode.placeholder == placeholder, !machine.isDiskFull,
                !machine.diskFails()
            else {
                return .failed
            }
            guard let tokens else { return absence.map { .absent($0) } ?? .failed }
            machine.disk[number]?.tokens = tokens
            machine.disk[number]?.placeholder = nil
            machine.disk[number]?.modified = placeholder.modified
            machine.disk[number]?.mode = placeholder.mode
            machine.disk[number]?.changed = SimDisk.tick(machine.timeOfDay)
            world.count(.fills)
            machine.makeDiskDurable()
            // As it is at this moment: what happens to it from now on is told by itself.
            if let state = machine.disk.state(number) {
                filled[state.key] = LocalEvidence(state)
                try await pause(10...3_000)
                noteWhole(LocalEvidence(state), placeholder.revision)
                if placeholder.offset != nil { noteFilled(elementOf: placeholder.revision) }
            }
            return .here
        } catch {
            return .failed
        }
    }

    private func noteWhole(_ evidence: LocalEvidence, _ revision: RevisionID) {
        synchronizer.tracker.noteDelivered(evidence.key)
        var changes = SyncedChanges()
        for var row in machine.database.synced(key: evidence.key) where row.content.revision == revision {
            row.local = evidence
            changes.upserts.append(row)
        }
        machine.database.apply(changes)
        for work in (synchronizer.tracker.waitingForContent.removeValue(forKey: evidence.key) ?? []).sorted() {
            synchronizer.handle(.woken(work))
        }
    }

    /// What became whole while it was written down as dataless.
    func corrected(_ row: SyncedItem) -> SyncedItem {
        guard let local = row.local, local.isDataless, let whole = filled[local.key],
            let number = machine.disk[SimDisk.number(local.key)],
            number.placeholder == nil, row.content.size == whole.size
        else { return row }
        var row = row
        row.local = whole
        return row
    }

    // MARK: For the engine

    func newStage(_ inode: SimInode) -> String { newStage(machine.disk.add(inode)) }

    func newStage(_ number: UInt64) -> String {
        stagedCount += 1
        let name = "\(stagedCount)"
        machine.disk.staging[name] = number
        return name
    }

    func perform(_ effect: EngineCore.Effect) {
        guard !isDead else { return }
        switch effect {
        case .connect: connect()
        case .disconnect: connection = 0
        case .setTimer(let moment):
            timer += 1
            let number = timer
            world.at(max(world.now, started + moment.sinceStart)) { [self] in
                if !isDead, number == timer { synchronizer.handle(.timer) }
            }
        case .runPass(let works): runPass(works)
        case .settled, .loadPending: break
        }
    }

    var now: Instant { Instant(world.now - started) }

    func beginCreating(_ key: InodeKey, _ item: ItemID) {
        ownItems.insert(item)
        creating[key] = item
    }

    func itemBeingCreated(_ key: InodeKey) -> ItemID? { creating[key] }

    func settled(_ item: ItemID, _ key: InodeKey?) {
        ownItems.remove(item)
        if let key { creating[key] = nil } else { creating = creating.filter { $0.value != item } }
    }
}
