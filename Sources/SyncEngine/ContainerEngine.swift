import Chunking
package import CloudClient
package import Driver
import EngineCore
import Glibc
package import Logging
import Reconciliation
package import Replica
import Synchronization
import SystemPackage
package import UbiquityModel

/// One container on one device: performs what `EngineCore` and `Planner` decide.
///
/// 1. `attach` the mount and `start`: what changed while the service did not run is found by a scan, unless it stopped cleanly.
/// 2. The connection lists what others changed, then follows the feed; the driver reports what programs change here.
/// 3. Each *pass* takes what is ready, looks at the three trees, and sends and applies. One pass runs at a time; long transfers
///    go on beside it.
/// 4. `stop` ends transfers where they are (they resume) and marks a clean stop.
///
/// It runs on a thread of its own, since its methods read the state database and the backing tree.
package actor ContainerEngine {
    typealias Core = EngineCore
    typealias Work = Core.Work
    typealias Verdict = Core.Verdict

    nonisolated let executor = ThreadExecutor(name: "ubi-engine")
    nonisolated package var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    package nonisolated let container: ContainerInfo
    package nonisolated let host: EngineHost
    nonisolated let replica: Replica
    nonisolated let cloud: any Cloud
    nonisolated let claims: any EngineClaims
    nonisolated let downloader: Downloader
    nonisolated let uploader: Uploader
    nonisolated let meter: TransferMeter
    nonisolated let readAhead: ReadAhead
    nonisolated let restraint = FetchingRestraint()
    nonisolated let contentWatch = ContentWatch()
    nonisolated let populator: Populator
    nonisolated let listing: FirstListing
    nonisolated let ownMount = OwnMount()
    /// Answers of the first listing that are not written down yet.
    var listingInbox: [ListingAnswer] = []
    var isWritingListing = false
    nonisolated let key: ContainerKey
    nonisolated let logger: Logger
    /// Renews the device's nonce; made by the service, since one device has several containers.
    let openSession: @Sendable () async throws(CloudError) -> CloudSession
    /// Writes down what the container declares, so that it counts after a restart too.
    let keepPackages: @Sendable (PackageDeclaration) async -> Void

    var mount: Mount?
    private var timerTask: Task<Void, Never>?
    private var connectionTask: Task<Void, Never>?
    var transferTasks: [ItemID: Task<Void, Never>] = [:]
    /// For good: see `signOut`.
    var isSignedOut = false
    private var settledWaiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    private var nextWaiter: UInt64 = 0
    var connectionProblem: String?
    /// Attempts in a row that did not reach the server.
    var failedConnections = 0
    /// Why nothing can be asked of the cloud, as far as that is known.
    private(set) var obstacle: String?

    let synchronizer: Synchronizer<EngineView>
    /// Contents that have been downloaded beside the tree and wait for the pass that publishes them.
    var downloaded: [ItemID: DownloadedContent] = [:]
    /// The version of a package of which a program reads files at the moment: it opens one after the other.
    var lookedInto: (content: ContentID, chunks: PackageChunks)?
    /// When new files may come with their content again, after that has failed.
    var bringsAgain = Instant.start
    private let gate = TransferGate()
    var syncCount = 0
    /// Packages of which files have become whole, by their revisions.
    var packagesToLookAt: Set<RevisionID> = []
    var keeping = KeepingState()
    var problems: [ItemID: ItemProblem] = [:]
    var position = LogPosition.beginning
    /// Items of the cloud that this device cannot represent, in words.
    var refusedItems: Set<String> = []

    /// - Parameter patience: how long programs wait for content, and for what lies in a folder.
    /// - Throws: `EngineError.failed` when the container's key is none.
    package init(
        container: ContainerInfo,
        replica: Replica,
        cloud: any Cloud,
        claims: any EngineClaims,
        deviceName: String,
        patience: Duration,
        logger: Logger,
        openSession: @escaping @Sendable () async throws(CloudError) -> CloudSession,
        keepPackages: @escaping @Sendable (PackageDeclaration) async -> Void
    ) throws(EngineError) {
        guard let key = ContainerKey(bytes: container.key) else { throw .failed("the container's key is damaged") }
        self.container = container
        self.replica = replica
        self.cloud = cloud
        self.claims = claims
        self.logger = logger
        self.openSession = openSession
        self.keepPackages = keepPackages
        self.key = key
        let meter = TransferMeter()
        self.meter = meter
        downloader = Downloader(
            container: container.id,
            key: key,
            cloud: cloud,
            replica: replica,
            meter: meter,
            gate: gate
        )
        uploader = Uploader(container: container.id, key: key, cloud: cloud, replica: replica, meter: meter, gate: gate)
        let relay = WholeRelay()
        listing = FirstListing(patience: patience)
        let readAhead = ReadAhead(downloader: downloader, replica: replica, restraint: restraint, logger: logger)
        self.readAhead = readAhead
        let filler = ContentFiller(
            downloader: downloader,
            replica: replica,
            restraint: restraint,
            patience: patience,
            logger: logger,
            becameWhole: { file, state in
                let placeholder = file.placeholder
                relay.engine.withLock { $0 }?.noteWhole(
                    file.key,
                    placeholder.revision,
                    state,
                    isPart: placeholder.offset != nil
                )
            },
            missed: { file, place in
                if file.placeholder.size <= ReadAhead.smallFile { readAhead.missed(place) }
            },
            grew: { [contentWatch] in contentWatch.grew() },
            wanted: { relay.engine.withLock { $0 }?.wantConnection() }
        )
        populator = Populator(replica: replica, known: downloader.known, logger: logger)
        populator.packages.declare { _ in container.packages }
        do throws(ReplicaError) {
            // Before the mount shows anything.
            try replica.database.beginListing()
            try populator.load()
            try replica.database.pruneContentsIfMany()
            try populator.packages.load()
            listing.load(try replica.database.unlisted())
        } catch {
            throw .failed("the replica cannot be read: \(error)")
        }
        host = EngineHost(
            replica: replica,
            filler: filler,
            populator: populator,
            listing: listing,
            readAhead: readAhead,
            watch: contentWatch
        )
        self.relay = relay
        synchronizer = Synchronizer(
            device: EngineView(
                container: container.id,
                replica: replica,
                populator: populator,
                cloud: cloud,
                uploader: uploader,
                claims: claims,
                deviceName: deviceName
            ),
            logger: logger
        )
        synchronizer.formerDeletions = replica.deletions.entries()
    }

    /// Breaks the circle between the engine and its filler, which is made first.
    final class WholeRelay: Sendable {
        let engine = Mutex<ContainerEngine?>(nil)
    }

    private nonisolated let relay: WholeRelay

    // MARK: Life

    package func attach(_ mount: Mount) {
        self.mount = mount
        synchronizer.device.engine = self
        synchronizer.device.mount = mount
        host.attach(self)
        readAhead.attach(mount, host)
        contentWatch.attach(self)
        relay.engine.withLock { $0 = self }
    }

    /// All that changed while nobody looked is known: what a stop leaves undone is what waits then.
    private var hasScanned = false
    /// Contents that are about to become files of their own.
    var orphansBeingKept: Int { host.orphansUnderWay }
    /// Of these, those that failed to and are tried again.
    var orphansResting = 0
    /// An old state of a package is looked through: one at a time, since a file of two of them is kept when it is only the second one's.
    var isLettingGo = false

    /// Finds what changed while nobody looked, and begins to sync.
    package func start() async throws(EngineError) {
        let database = replica.database
        database.readInBursts()
        executor.whenIdle { database.endReading() }
        do {
            position = try replica.database.position() ?? .beginning
            let wasClean = try replica.database.wasStoppedCleanly()
            if wasClean {
                try replica.database.setStoppedCleanly(false)
                // Before a program changes anything: a power loss that takes this back, and not the change, would hide the change.
                try replica.tree.synchronize()
            }
            synchronizer.heldDeletions = try replica.database.held()
            synchronizer.confirmedDeletions = try replica.database.confirmed()
            tracker.imported = try replica.database.imported()
            synchronizer.load(changedPackages: try replica.database.changedPackages())
            tracker.sending = try replica.database.sending()
            tracker.sentLinks = try replica.database.sentLinks()
            synchronizer.load(sentDeletions: try replica.database.sentDeletions())
            synchronizer.load(unwitnessed: try replica.database.unwitnessed())
            // The mount is there before this: what was made on request, and deleted since, has rows as well.
            recordPopulated()
            try dropStrangeDeletions()
            try synchronizer.scan(isAfterCleanStop: wasClean)
            // A power loss that takes this back, and not that the stop was clean no more, would have an old state pass for edits.
            if wasClean, !tracker.unwitnessed.isEmpty { try replica.tree.synchronize() }
            hasScanned = true
        } catch {
            throw .failed("the replica cannot be read: \(error)")
        }
        handle(.started)
        Task { await self.referToAgreedRevisions() }
        Task { await self.keepFormerlyReplaced() }
        Task { await self.removeUnwantedParts() }
    }

    /// All that others had done when this device heard of it is done here as well: what they delete from now on goes.
    private func forgetImported() {
        guard !tracker.imported.isEmpty else { return }
        forgetImported { _ in true }
    }

    /// All that others had done is known: what they have not deleted by now goes when they do. The rest comes back first.
    func endImports() {
        guard !tracker.imported.isEmpty else { return }
        forgetImported { item in try replica.database.remote(item)?.isDeleted != true }
    }

    /// After a pass.
    func endBroughtBack() {
        guard !tracker.broughtBack.isEmpty else { return }
        forgetImported { tracker.broughtBack.contains($0) }
        tracker.broughtBack = []
    }

    private func forgetImported(where isOver: (ItemID) throws -> Bool) {
        do {
            let over = try tracker.imported.filter(isOver)
            try replica.database.setImported(false, over.sorted())
            tracker.imported.subtract(over)
        } catch {
            logger.warning("what was imported stays marked", metadata: ["why": "\(error)"])
        }
    }

    /// Of inodes that were never synced, or are another item's by now. Programs are at work already: what they delete meanwhile stays.
    private func dropStrangeDeletions() throws {
        let entries = replica.deletions.entries()
        let strange = try entries.filter { entry in
            switch entry {
            case .inode(let key), .replacing(let key): try replica.database.synced(key: key).isEmpty
            // Done, and the log could not be told.
            case .item(let item):
                try replica.database.synced(item) == nil && replica.database.remote(item)?.isDeleted == true
            }
        }
        guard !strange.isEmpty else { return }
        do throws(Errno) { try replica.deletions.remove(strange) } catch {
            // On a full disk: they say nothing of any item, and whoever makes room needs the mount.
            logger.warning("deletions of no item stay in the log", metadata: ["why": "\(error)"])
        }
    }

    /// Ends what runs. What was not sent is found again by the trees.
    package func stop() async {
        synchronizer.isStopping = true
        readAhead.detach()
        timerTask?.cancel()
        connectionTask?.cancel()
        for task in transferTasks.values { task.cancel() }
        for task in Array(transferTasks.values) { await task.value }
        await stopKeeping()
        while synchronizer.isRunningPass { await withCheckedContinuation { passWaiters.append($0) } }
        // The pass may have begun further ones.
        for task in transferTasks.values { task.cancel() }
        for task in Array(transferTasks.values) { await task.value }
        // What somebody still wants whole is not fetched to its end: all that follows needs the disk only, and as long as that went on, the
        // container could not be mounted again.
        gate.set(closed: true)
        host.filler.end()
        await recordingBesideEnds()
        await orphansAreKept()
        drainChanges()
        // Only if nothing waits do the trees agree with what the driver saw; else the next start scans.
        let left = core.unfinished + core.parkedWork
        let isClean =
            hasScanned && !synchronizer.changedWhileStopping && synchronizer.heldDeletions.isEmpty
            && orphansBeingKept == 0 && mount?.wasStoppedInUse != true
            && left.allSatisfy { if case .item = $0 { true } else { false } }
        do {
            try replica.tree.synchronize()
            if isClean { try replica.database.setStoppedCleanly(true) }
        } catch {
            logger.warning("the stop is not marked as clean", metadata: ["why": "\(error)"])
        }
        listing.setObstacle(.networkDown)
        let ownMount = ownMount
        _ = try? await BlockingPool.shared.run { ownMount.end() }
        host.attach(nil)
        relay.engine.withLock { $0 = nil }
        for waiter in settledWaiters.values { waiter.resume() }
        settledWaiters = [:]
    }

    /// Files that became whole while somebody was about to write down that they are dataless.
    private var filledMeanwhile: [InodeKey: (revision: RevisionID, state: LocalState)] = [:]
    private var fillWatchers = 0
    /// The log's end after the last commit that was answered, until that is written down.
    var answeredPosition: LogPosition?
    var passWaiters: [CheckedContinuation<Void, Never>] = []
    /// The database did not take rows of what lookups have made.
    var recordsPopulatedLater = false
    var recordingBeside = RecordingBeside()

    package func setOffline(_ offline: Bool) {
        guard !isSignedOut, !synchronizer.isStopping else { return }
        failedConnections = 0
        obstacle = offline ? "this device was switched offline" : nil
        gate.set(closed: offline)
        if offline {
            host.filler.switchOff()
            // They begin anew where they were, once that is wanted.
            for task in transferTasks.values { task.cancel() }
        } else {
            host.filler.becameReachable()
        }
        listing.setObstacle(offline ? .networkDown : nil)
        handle(.switched(offline: offline))
    }

    /// Nothing is asked of the cloud, for that reason, before the next connection is there.
    func becameUnreachable(_ why: String) {
        obstacle = why
        host.filler.becameUnreachable(why)
    }

    func becameReachable() {
        obstacle = nil
        host.filler.becameReachable()
    }

    /// Somebody wants something while the server is not reached: it may be back, and the next attempt some time away.
    nonisolated func wantConnection() { Task { await self.handle(.connectionWanted) } }

    // MARK: Driving the core

    var now: Instant { synchronizer.device.now }
    var core: Core { synchronizer.core }
    var tracker: ItemTracker<EngineView> { synchronizer.tracker }

    /// The time of day, for edit times and the server's correction of clocks.
    nonisolated var wallClock: Timestamp { EngineView.timeOfDay }

    func handle(_ event: Core.Event) { synchronizer.handle(event) }

    func perform(_ effect: Core.Effect) {
        switch effect {
        case .connect:
            let previous = connectionTask
            connectionTask = Task {
                await previous?.value
                await self.connect()
            }
        case .disconnect:
            connectionTask?.cancel()
        case .setTimer(let moment):
            timerTask?.cancel()
            let delay = max(.zero, moment - now)
            timerTask = Task {
                do { try await Task.sleep(for: delay) } catch { return }
                self.handle(.timer)
            }
        case .loadPending:
            // Needs no device: the synchronizer does it.
            break
        case .runPass(let works):
            // From now on: whoever waits for the end of what is under way waits for this as well.
            synchronizer.isRunningPass = true
            Task { await self.runPass(works) }
        case .settled:
            forgetImported()
            let waiters = settledWaiters.values
            settledWaiters = [:]
            for waiter in waiters { waiter.resume() }
        }
    }

    func wake(_ works: Set<Work>) {
        for work in works.sorted() { handle(.woken(work)) }
    }

    private func runPass(_ works: [Work]) async {
        beginWatchingFills()
        let view = synchronizer.device
        let drops = view.ahead.drops
        view.ahead.use(await view.ahead.taken(), drops)
        drainChanges()
        let next = core.upcoming(at: now)
        if next.count >= LookAhead.least {
            view.ahead.begin(tracker.worthReadingAhead(next), with: uploader, tick: view.timestampTick)
        }
        view.keepsFolder = true
        await synchronizer.run(works)
        endBroughtBack()
        view.keepsFolder = false
        view.ahead.end()
        endWatchingFills()
        for waiter in passWaiters { waiter.resume() }
        passWaiters = []
    }

    /// Returns when nothing waits any more, when the engine stops, or when the waiting task is cancelled.
    func settledOrCancelled() async {
        guard !synchronizer.isStopping, !core.isSettled else { return }
        nextWaiter += 1
        let number = nextWaiter
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { continuation.resume() } else { settledWaiters[number] = continuation }
            }
        } onCancel: {
            Task { await self.abandon(number) }
        }
    }

    private func abandon(_ number: UInt64) { settledWaiters.removeValue(forKey: number)?.resume() }

    /// The connection broke under a request: a new one is made.
    func reconnect(after error: CloudError) {
        connectionProblem = "\(error)"
        connectionTask?.cancel()
        handle(.connectionLost(jitter: Double.random(in: 0..<1)))
    }

    // MARK: What the driver reports

    /// Comes for what programs change, again and again until nothing comes any more.
    func gatherChanges() async {
        var time = EngineHost.gatheringTime
        repeat {
            await executor.sleep(for: time)
            drainChanges()
            time = min(time * 2, EngineHost.longestGatheringTime)
        } while !host.endGathering()
    }

    package func drainChanges() {
        let (changes, closed) = host.takeChanges()
        // In this order: what was changed had been made before.
        recordPopulated()
        for change in changes { synchronizer.note(change) }
        for key in closed { synchronizer.writerClosed(key) }
        if !synchronizer.isRunningPass { tracker.withdraw() }
    }

    /// Files that have become whole since the engine last wrote that down.
    private nonisolated let filled = Mutex<[FilledFile]>([])

    private struct FilledFile: Sendable {
        var key: InodeKey
        var revision: RevisionID
        var state: LocalState
        /// Of a package.
        var isPart: Bool
    }

    /// A dataless file has all its content: records that, unless it changed again.
    nonisolated func noteWhole(_ key: InodeKey, _ revision: RevisionID, _ state: LocalState, isPart: Bool) {
        let isFirst = filled.withLock { filled in
            filled.append(FilledFile(key: key, revision: revision, state: state, isPart: isPart))
            return filled.count == 1
        }
        // What becomes whole until the engine comes to it goes into the same transaction.
        if isFirst { Task { await self.recordFilled() } }
    }

    func recordFilled() {
        let files = filled.withLock { filled in
            defer { filled = [] }
            return filled
        }
        guard !files.isEmpty else { return }
        for file in files {
            mount?.becameWhole(file.key)
            tracker.noteDelivered(file.key)
            if fillWatchers > 0 { filledMeanwhile[file.key] = (file.revision, file.state) }
        }
        do {
            try replica.database.write(
                filled: files.filter { !$0.isPart }.map { ($0.revision, LocalEvidence($0.state)) }
            )
        } catch {
            // Without the row the next look hashes the file and finds it equal.
            logger.warning("filled files are not recorded", metadata: ["why": "\(error)"])
        }
        contentWatch.grew()
        noteFilled(packagesOf: Set(files.filter(\.isPart).map(\.revision)))
        for file in files {
            for work in tracker.waitingForContent.removeValue(forKey: file.key) ?? [] { handle(.woken(work)) }
        }
    }

    /// From the look at files until their rows are written: what becomes whole between is noted.
    func beginWatchingFills() { fillWatchers += 1 }

    func endWatchingFills() {
        fillWatchers -= 1
        if fillWatchers == 0 { filledMeanwhile = [:] }
    }

    /// It has been made dataless again since.
    func forgetFilled(_ key: InodeKey) { filledMeanwhile[key] = nil }

    /// Rows that were written as dataless although the file had become whole meanwhile are put right.
    func correctFilled(_ written: [SyncedItem]) throws {
        guard !filledMeanwhile.isEmpty else { return }
        let corrected = written.compactMap { row -> SyncedItem? in
            guard let local = row.local, local.isDataless, let filled = filledMeanwhile[local.key],
                filled.revision == row.revision
            else { return nil }
            var row = row
            row.local = LocalEvidence(filled.state)
            return row
        }
        try replica.database.write(synced: corrected)
    }

    // MARK: Items and places

    /// The local folder of a synced folder item; `nil` while it is not here.
    func folderKey(of item: ItemID) -> InodeKey? { tracker.folderKey(of: item) }

    /// `nil`: nothing is there, or its folder is gone.
    func observe(_ place: LocalPlace) throws -> LocalState? { try tracker.view.observe(place) }

    /// The path of a place now, if its folder still exists.
    func path(of place: LocalPlace) -> ItemPath? { tracker.view.path(of: place) }

    /// For people: the path of an item by the remote tree, as far as it is known.
    func remotePath(of item: ItemID) -> ItemPath { synchronizer.remotePath(of: item) }
}

extension SyncedItem {
    fileprivate var revision: RevisionID? {
        if case .file(let file) = content { file.revision } else { nil }
    }
}
