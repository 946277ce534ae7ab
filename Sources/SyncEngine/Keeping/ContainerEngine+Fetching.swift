import CloudClient
import Driver
import EngineCore
import Logging
import Replica
import SystemPackage
import UbiquityModel

/// Contents that come here by themselves: all of a greedy container, and what is pinned.
///
/// 1. What appears here, or gets another content while it is dataless, is fetched then.
/// 2. What was in the cloud before is searched for: after each connection, after the settings have changed, and when something that was
///    in the way may be over.
/// 3. Nothing of this waits for anybody: over a link that costs, and on battery, it does not come, and it leaves room on the disk (`FetchingRoom`).
extension ContainerEngine {
    /// What takes room on the disk besides this program tells nobody when it goes.
    private static let diskPause = Duration.seconds(600)
    /// Room that this program makes is often made piece by piece.
    private static let roomPause = Duration.seconds(2)
    /// A connection on which nothing moves, or none for a moment, tells nobody when it is well again.
    private static let passingPause = Duration.seconds(30)

    func isKept(_ remote: RemoteItem) -> Bool { keeping.rules.isGreedy || isPinned(remote) }

    /// Whether a new file of the cloud, when it appears here, has its content with it.
    func fetchesByItself(_ remote: RemoteItem) -> Bool {
        guard !restraint.isOn, !remote.isAnnounced else { return false }
        return switch keeping.obstacle {
        case nil: isKept(remote)
        case .limit: isPinned(remote)
        case .disk: false
        }
    }

    /// What waited for the end of a restraint comes then.
    package nonisolated func setRestraint(_ new: Restraint?) {
        guard restraint.set(new) != new else { return }
        Task { await self.restraintChanged() }
    }

    private func restraintChanged() {
        if restraint.isOn { stopFetching() } else { searchKept() }
    }

    var mayFetch: Bool {
        core.connection == .live && !restraint.isOn && !isSignedOut && !synchronizer.isStopping && mount != nil
            && !Task.isCancelled
    }

    private var keepsAnything: Bool { keeping.rules.isGreedy || !((try? replica.database.pins()) ?? []).isEmpty }

    func stopFetching() {
        keeping.search?.cancel()
        keeping.searchesAgain = false
        keeping.retry?.cancel()
        keeping.retryDue = nil
        keeping.dropQueue()
        for task in keeping.running.values { task.cancel() }
    }

    // MARK: What appears

    /// Files that have just appeared here or have another content now: those that are kept are fetched, if they are dataless.
    func fetchAppeared(_ rows: [SyncedItem]) {
        guard !keeping.isSearchPopulating, mayFetch, keeping.obstacle != .disk, keepsAnything else { return }
        for row in rows {
            guard let local = row.local, local.isDataless, case .file(let file) = row.content, file.content != nil
            else {
                continue
            }
            guard keeping.rules.isGreedy || isPinned(row), let folder = folderKey(of: row.place.parent) else {
                continue
            }
            guard !keeping.isQueueFull else {
                keeping.isBehind = true
                break
            }
            keeping.queue.append((LocalPlace(folder: folder, name: row.place.name), local.key))
        }
        startQueued()
    }

    private func startQueued() {
        while keeping.running.count < KeepingState.width, let next = keeping.takeFromQueue() {
            guard keeping.running[next.key] == nil else { continue }
            keeping.running[next.key] = Task {
                let isPinned = (try? self.replica.database.synced(key: next.key))?.first.map { self.isPinned($0) }
                _ = await self.bringKept(next.place, isPinned: isPinned ?? false)
                self.keeping.running[next.key] = nil
                self.startQueued()
            }
        }
        guard keeping.running.isEmpty, keeping.isBehind else { return }
        keeping.isBehind = false
        searchKept()
    }

    // MARK: What is missing

    /// What is new in a folder that is not here yet appears only when somebody looks: what is kept of that is searched for.
    /// - Parameter arriving: appear by themselves.
    func searchForNew(_ items: [RemoteItem], besides arriving: [RemoteItem]) {
        guard mayFetch, keepsAnything else { return }
        let appearing = Set(arriving.map(\.id))
        let new = items.filter { item in
            guard !item.isDeleted, case .file(let file) = item.content, file.content != nil, isKept(item) else {
                return false
            }
            // In a folder that is here as a whole it is planned like everything else.
            return folderKey(of: item.place.parent) == nil || populator.key(of: item.place.parent) != nil
        }
        guard !new.isEmpty else { return }
        if new.contains(where: { !appearing.contains($0.id) }) { searchKept() }
        // A search that runs may be past its folder, and leaves out what is just about to appear: it is looked for once more.
        searchLater(after: Self.roomPause)
    }

    /// Fetches all that is kept and is not here, beside everything else.
    func searchKept() {
        guard mayFetch, keepsAnything else { return }
        guard keeping.search == nil else {
            keeping.searchesAgain = true
            return
        }
        keeping.search = Task {
            await self.fetchMissing()
            self.keeping.search = nil
            guard self.keeping.searchesAgain else { return }
            self.keeping.searchesAgain = false
            // This one may have been cancelled, and who is asks for nothing.
            Task { self.searchKept() }
        }
    }

    private func fetchMissing() async {
        await refreshRoom()
        keeping.obstacle = nil
        let pins = ((try? replica.database.pins()) ?? []).sorted()
        // First what comes in any case.
        guard await fetchMissing(under: pins, isPinned: true), keeping.rules.isGreedy else { return }
        _ = await fetchMissing(under: [.root], isPinned: false)
    }

    /// - Returns: whether it came to the end.
    private func fetchMissing(under roots: [ItemID], isPinned: Bool) async -> Bool {
        await withTaskGroup(of: Bool.self) { tasks in
            var walk = MissingWalk(under: roots, in: replica.database)
            var running = 0
            while let group = await walk.next() {
                if running == KeepingState.width {
                    guard await tasks.next() ?? true else { return false }
                    running -= 1
                }
                guard mayFetch else { return false }
                tasks.addTask { await self.bring(group, isPinned: isPinned) }
                running += 1
            }
            while let goesOn = await tasks.next() {
                if !goesOn { return false }
            }
            return true
        }
    }

    private func bring(_ group: [MissingContent], isPinned: Bool) async -> Bool {
        guard group.count == 1, let missing = group.first else {
            return await bringTogether(group, isPinned: isPinned)
        }
        return await bring(missing, isPinned: isPinned)
    }

    /// - Returns: whether to go on with others.
    func bring(_ missing: MissingContent, isPinned: Bool) async -> Bool {
        guard mayFetch, hasRoom(for: missing.file.size, isPinned: isPinned) else { return false }
        guard let (_, place) = placesToFill([missing]).first else { return true }
        return await bringKept(place, isPinned: isPinned)
    }

    /// Where a file lies, made now if it is in the cloud only; `nil` for one that is just about to appear.
    func placeToFill(_ missing: MissingContent) -> LocalPlace? {
        if let row = (try? replica.database.synced(missing.id)) ?? nil {
            return folderKey(of: row.place.parent).map { LocalPlace(folder: $0, name: row.place.name) }
        }
        guard let folder = populatedFolder(missing.place.parent),
            (try? populator.populate(folder, missing.place.name)) == true
        else { return nil }
        // The kernel may have been told that there is none.
        mount?.nameAppeared(in: folder, missing.place.name)
        return LocalPlace(folder: folder, name: missing.place.name)
    }

    /// - Returns: whether to go on with others.
    private func bringKept(_ place: LocalPlace, isPinned: Bool) async -> Bool {
        guard mayFetch else { return false }
        guard let state = (try? observe(place)) ?? nil, state.lacksContent else { return true }
        guard hasRoom(for: state.size, isPinned: isPinned) else { return false }
        keeping.room.underWay = Sizes.sum(keeping.room.underWay, state.size)
        let error = await bringHere(place)
        keeping.room.underWay = max(0, keeping.room.underWay - state.size)
        guard let error else {
            // About: it is counted exactly from time to time.
            keeping.room.localBytes = Sizes.sum(keeping.room.localBytes, state.size)
            return true
        }
        return goesOn(after: error, place.name)
    }

    /// - Returns: whether others may come.
    func goesOn(after error: FillError, _ name: Name?) -> Bool {
        if error.errno == .noSpace { note(.disk) }
        if !error.isPassing {
            let shown = name?.description ?? ""
            logger.info("a content is not fetched", metadata: ["name": "\(shown)", "why": "\(error)"])
        }
        switch error {
        case .cloud(.offline), .cloud(.stalled), .cloud(.wrongServer):
            // The feed may outlive what ended this, and then nobody else looks again.
            if !Task.isCancelled { searchLater(after: Self.passingPause) }
        case .cloud, .system, .corrupted, .gone, .withdrawn, .superseded, .unsent, .authorGone, .wouldWait: break
        }
        return !error.concernsAll
    }

    // MARK: Room

    func hasRoom(for bytes: Int64, isPinned: Bool) -> Bool {
        if let free = try? replica.tree.freeBytes() { keeping.room.freeBytes = free }
        guard let obstacle = keeping.room.obstacle(to: bytes, isPinned: isPinned) else { return true }
        note(obstacle)
        return false
    }

    func note(_ obstacle: FetchingRoom.Obstacle) {
        if keeping.obstacle != obstacle {
            keeping.obstacle = obstacle
            logger.notice("not all content is fetched", metadata: ["why": "\(keeping.obstacleInWords ?? "")"])
        }
        if obstacle == .disk { searchLater(after: Self.diskPause) }
    }

    /// Content or files are gone from the disk.
    func roomMade() {
        if keeping.obstacle != nil { searchLater(after: Self.roomPause) }
    }

    private func searchLater(after pause: Duration) {
        let due = now + pause
        if let known = keeping.retryDue, known <= due { return }
        keeping.retryDue = due
        keeping.retry?.cancel()
        keeping.retry = Task { [weak self] in
            do { try await Task.sleep(for: pause) } catch { return }
            await self?.searchAgain()
        }
    }

    private func searchAgain() {
        keeping.retryDue = nil
        searchKept()
    }

    /// Counts what is here, exactly.
    func refreshRoom() async {
        let (replica, parts) = (replica, host.filler.parts())
        let seen = try? await BlockingPool.shared.run {
            (
                local: try Self.localBytes(replica, parts), free: try replica.tree.freeBytes(),
                disk: try replica.tree.diskBytes()
            )
        }
        guard let seen else { return }
        keeping.room.localBytes = seen.local
        keeping.room.freeBytes = seen.free
        keeping.room.diskBytes = seen.disk
    }

    /// With what is just coming, which is not written down yet; or has come since it was asked for, and is.
    nonisolated static func localBytes(_ replica: Replica, _ parts: [(key: InodeKey, bytes: Int64)]) throws -> Int64 {
        try parts.reduce(try replica.database.localBytes()) { sum, part in
            Sizes.sum(sum, max(0, part.bytes - (try replica.database.countedBytes(of: part.key))))
        }
    }
}
