import CloudClient
import Driver
import EngineCore
import Logging
import Reconciliation
import Replica
package import UbiquityModel

/// Contents that go by themselves: when more is here than the user wants, those that were used least recently, and those that nobody has
/// opened for long (semantics section 3). What goes passes all the checks of an eviction by command.
///
/// What the database counts, whole files and the parts that are written down, and what is just coming is what is here. It is looked at
/// again when content comes, when what was in the way of an eviction is over, and in the moment in which the next one goes for its age.
extension ContainerEngine {
    /// Of one question to the cloud.
    private static let groupSize = 200
    /// For content that grows old at different times the engine does not wake up more often than this.
    private static let longestGathering = Duration.seconds(3600)

    package func setKeeping(_ rules: KeepingRules) {
        let former = keeping.rules
        guard rules != former else { return }
        keeping.rules = rules
        contentWatch.setOn(rules.givesUp || rules.isGreedy)
        if former.isGreedy, !rules.isGreedy { stopFetching() }
        keeping.obstacle = nil
        searchKept()
        contentWatch.grew()
    }

    /// Nothing comes or goes by itself any more. What programs have used is written down.
    func stopKeeping() async {
        contentWatch.attach(nil)
        keeping.aging?.cancel()
        stopFetching()
        await keeping.search?.value
        for task in Array(keeping.running.values) { await task.value }
        writeUses()
    }

    /// When programs last used what.
    func writeUses() {
        do { try replica.database.write(uses: withPackages(contentWatch.takeUses())) } catch {
            // Then it counts as not used for a while longer.
            logger.warning("what was opened when is not recorded", metadata: ["why": "\(error)"])
        }
    }

    /// What lies in a package is no item: who uses it uses the package.
    private func withPackages(_ uses: [InodeKey: Timestamp]) -> [InodeKey: Timestamp] {
        var result = uses
        var known: [ItemPath: InodeKey?] = [:]
        for (key, time) in uses {
            // What the kernel has forgotten meanwhile has none.
            guard let folder = mount?.path(of: key)?.parent,
                folder.names.contains(where: { populator.packages.maybePackage($0) })
            else { continue }
            let owner: InodeKey?
            if let found = known[folder] {
                owner = found
            } else {
                owner = packageFolder(around: folder)
                known[folder] = .some(owner)
            }
            if let owner { result[owner] = max(result[owner] ?? time, time) }
        }
        return result
    }

    private func packageFolder(around path: ItemPath) -> InodeKey? {
        guard let folder = try? replica.tree.openFolder(at: path) else { return nil }
        guard let key = try? InodeKey(descriptor: folder.raw) else { return nil }
        return (try? populator.packages.packageKey(around: key)) ?? nil
    }

    func reviewContent() async {
        guard !isSignedOut, !synchronizer.isStopping, mount != nil else { return }
        guard !keeping.isReviewing else {
            keeping.reviewsAgain = true
            return
        }
        keeping.isReviewing = true
        let began = ContinuousClock.now
        await refreshRoom()
        if keeping.rules.isGreedy, keeping.room.obstacle(to: 0, isPinned: true) == .disk { note(.disk) }
        let hindering = await giveUpContent()
        keeping.isReviewing = false
        contentWatch.looked(for: .now - began, hindering: hindering)
        setAging()
        // What was closed before its closing was waited for. (What stays open in another way is asked about once.)
        let isClosed = hindering != keeping.hindering && hindering.contains { !(mount?.isOpen($0) ?? false) }
        keeping.hindering = hindering
        guard keeping.reviewsAgain || isClosed else { return }
        keeping.reviewsAgain = false
        contentWatch.grew()
    }

    /// - Returns: files that would go, were they not open.
    private func giveUpContent() async -> Set<InodeKey> {
        guard keeping.rules.givesUp else { return [] }
        drainChanges()
        recordFilled()
        writeUses()
        try? replica.database.write(useOfUndatedPackages: wallClock)
        var tried: Set<ItemID> = []
        var stayed = 0
        var hindering: Set<InodeKey> = []
        while core.connection == .live, !synchronizer.isStopping {
            let (replica, limit) = (replica, stayed + Self.groupSize)
            let contents = try? await BlockingPool.shared.run { try replica.database.localContents(limit: limit) }
            let untried = (contents ?? []).filter { !tried.contains($0.id) }
            let going = keeping.rules.outgoing(untried, localBytes: keeping.room.localBytes, at: wallClock)
            guard !going.isEmpty else { break }
            tried.formUnion(going)
            let outcome = await giveUp(going)
            stayed += going.count - outcome.gone
            hindering.formUnion(outcome.open)
            await refreshRoom()
            // The next connection looks again.
            if !outcome.isAnswered { break }
        }
        return hindering
    }

    private struct Outcome {
        var gone = 0
        /// What stays because it is open.
        var open: Set<InodeKey> = []
        /// Whether the cloud says what it has.
        var isAnswered = true
    }

    private func giveUp(_ ids: [ItemID]) async -> Outcome {
        let coming = host.filler.coming()
        var result = Outcome()
        var items: [Resolved] = []
        let found = ids.compactMap { item(to: $0) }
        for item in found where !coming.contains(item.state.key) {
            // A package that is in use stays whole, and not only those of its files that are open.
            let open = openFiles(in: item)
            if open.isEmpty { items.append(item) } else { result.open.formUnion(open) }
        }
        // What is here of a package is counted as the part of a file is.
        let parts = Set(items.lazy.filter { $0.state.isDataless || $0.state.kind == .package }.map(\.path))
        let byPath = Dictionary(items.map { ($0.path, $0) }) { first, _ in first }
        var empty: [ItemID] = []
        for one in await evict(items, [], patientUntil: .now) {
            guard let refusal = one.refusal else {
                result.gone += 1
                // Next to nothing may have been here of it, and that stays.
                if parts.contains(one.path), let row = byPath[one.path]?.row { empty.append(row.id) }
                continue
            }
            if refusal == Self.isOpen, let item = byPath[one.path] { result.open.insert(item.state.key) }
            if refusal == Self.isClaimed { waitForClaim(one.path) }
            if refusal == Self.unconfirmed { result.isAnswered = false }
        }
        try? replica.database.removeRanges(empty)
        return result
    }

    /// Of a package, those of its files that programs have open.
    private func openFiles(in item: Resolved) -> [InodeKey] {
        guard item.state.kind == .package, let mount else { return [] }
        // `item(to:)` has just looked at it.
        return (synchronizer.device.packageFiles[item.state.key] ?? []).filter { mount.isOpen($0) }
    }

    /// Only what both sides agree on: of what has a newer content in the cloud, that is about to come.
    private func item(to id: ItemID) -> Resolved? {
        guard let row = (try? replica.database.synced(id)) ?? nil,
            let remote = (try? replica.database.remote(id)) ?? nil,
            Planner.sameContent(row.content, remote.content), let folder = folderKey(of: row.place.parent)
        else { return nil }
        let place = LocalPlace(folder: folder, name: row.place.name)
        guard let path = path(of: place), let state = (try? observe(place)) ?? nil,
            state.kind == .file || state.kind == .package
        else { return nil }
        return Resolved(path: path, place: place, state: state, row: row, remote: remote)
    }

    private func waitForClaim(_ path: ItemPath) {
        guard !keeping.waitsForClaim else { return }
        keeping.waitsForClaim = true
        Task { [weak self, claims] in
            await claims.whenFree(path)
            await self?.claimEnded()
        }
    }

    private func claimEnded() {
        keeping.waitsForClaim = false
        contentWatch.grew()
    }

    /// Sets the timer for the next content that goes for its age.
    private func setAging() {
        keeping.aging?.cancel()
        keeping.aging = nil
        let time = wallClock
        guard let span = keeping.rules.unusedLimit, let oldest = keeping.rules.oldestUse(at: time),
            let next = (try? replica.database.firstUse(after: oldest)) ?? nil,
            let remaining = keeping.rules.remaining(of: next, at: time)
        else { return }
        let pause = max(remaining + .milliseconds(1), min(span / 50, Self.longestGathering))
        keeping.aging = Task { [weak self] in
            do { try await Task.sleep(for: pause) } catch { return }
            await self?.reviewContent()
        }
    }

    // MARK: Status

    /// `nil` where nothing comes or goes by itself but what is pinned.
    func keepingStatus() -> KeepingStatus? {
        let rules = keeping.rules
        guard rules.givesUp || rules.isGreedy else { return nil }
        var status = KeepingStatus(
            limitBytes: rules.limitBytes,
            unusedLimit: rules.unusedLimit,
            isGreedy: rules.isGreedy
        )
        status.localBytes = (try? Self.localBytes(replica, host.filler.parts())) ?? 0
        guard rules.isGreedy, let missing = try? replica.database.missingTotals() else { return status }
        status.missingCount = missing.count
        status.missingBytes = missing.bytes
        status.obstacle = restraint.current?.inWords ?? keeping.obstacleInWords
        return status
    }
}
