import Chunking
import Driver
import Logging
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// One pump for each file of which something is wanted: it fetches, range after range, what is waited for, what reading needs next, and then
/// the rest; it ends when nobody wants any more of it.
extension ContentFiller {
    func startPump(_ file: PlaceholderFile) {
        Task {
            await self.pump(file)
            // It may have made room for another one's rest.
            self.startRests()
        }
    }

    private func pump(_ file: PlaceholderFile) async {
        let id = ObjectIdentifier(file)
        let obstacles = state.withLock(\.obstacles)
        do throws(FillError) {
            let (source, isParked) = try await sourceOrPark(file, id)
            guard let manifest = source.manifest, !isParked else { return tellEnded() }
            // What is downloaded by name becomes whole file by file, and no others with it.
            if file.placeholder.offset == nil, !isWantedByEngine(id) { missed(file, source.place) }
            try await fill(file, id, source, manifest)
            // Once the transfer has ended for whoever asks.
            completeServed(id)
        } catch {
            logger.info("cannot fetch", metadata: ["revision": "\(file.placeholder.revision)", "why": "\(error)"])
            fail(id, error, obstacles)
        }
        tellEnded()
    }

    private func isWantedByEngine(_ id: ObjectIdentifier) -> Bool {
        state.withLock { $0.files[id]?.waiters.values.contains { $0.isEngine } ?? false }
    }

    private func fill(
        _ file: PlaceholderFile,
        _ id: ObjectIdentifier,
        _ source: Source,
        _ manifest: Manifest
    ) async throws(FillError) {
        let index = ChunkIndex(manifest)
        guard index.size == file.placeholder.size else { throw .corrupted("the manifest does not fit the size") }
        let token = downloader.meter.begin(
            source.item,
            path: source.place.name.description,
            direction: .download,
            total: index.size
        )
        defer { downloader.meter.end(token) }
        let keeper = RangeKeeper()
        while let range = nextRange(file, id, try room(for: file, id)) {
            try await fetch(range, file, id, index, token, keeper)
            completeServed(id)
        }
        defer {
            state.withLock { state in
                if let index = state.finishing.firstIndex(where: { $0 === file }) { state.finishing.remove(at: index) }
            }
        }
        // Also if the driver was faster, for who writes to it: nobody else tells the engine.
        if file.missing(in: 0..<index.size).isEmpty, !file.isDiscarded { try await finish(file) }
    }

    /// Fetches a range, and what follows it: of long ones, the next is asked for shortly before the last bytes have come.
    private func fetch(
        _ range: Range<Int64>,
        _ file: PlaceholderFile,
        _ id: ObjectIdentifier,
        _ index: ChunkIndex,
        _ token: UInt64,
        _ keeper: RangeKeeper
    ) async throws(FillError) {
        var running = start(range, file, id, index, token, keeper)
        while running.range.count > Self.largestWindow / 4 {
            await running.nearEnd.wait()
            guard let room = try? room(for: file, id), let next = rangeAhead(file, id, after: running.range, room)
            else {
                break
            }
            let following = start(next, file, id, index, token, keeper)
            if let error = await running.task.value {
                following.task.cancel()
                _ = await following.task.value
                throw error
            }
            completeServed(id)
            running = following
        }
        if let error = await running.task.value { throw error }
    }

    private struct Fetch {
        /// To the end of its last chunk.
        var range: Range<Int64>
        var task: Task<FillError?, Never>
        var nearEnd: Milestone
    }

    private func start(
        _ range: Range<Int64>,
        _ file: PlaceholderFile,
        _ id: ObjectIdentifier,
        _ index: ChunkIndex,
        _ token: UInt64,
        _ keeper: RangeKeeper
    ) -> Fetch {
        let nearEnd = Milestone()
        let wanted = index.entries(covering: file.missing(in: range))
        let range = range.lowerBound..<max(range.upperBound, wanted.last?.range.upperBound ?? 0)
        let last = max(range.lowerBound, range.upperBound - Self.overlap)
        let written: @Sendable () -> Void = { [weak self, replica] in
            if file.contains(range.lowerBound..<last) { nearEnd.reach() }
            keeper.keep(file, in: replica)
            self?.completeServed(id)
            self?.grew()
        }
        let task = Task { [downloader] () -> FillError? in
            defer { nearEnd.reach() }
            guard !wanted.isEmpty else { return nil }
            do throws(FillError) {
                try await downloader.fetch(wanted, into: file, token: token, written: written)
                return nil
            } catch { return error }
        }
        return Fetch(range: range, task: task, nearEnd: nearEnd)
    }

    /// How many bytes may be fetched at once. Throws when the disk has no room for what is waited for, before any of it is written:
    /// a file that will not fit does not take the last room from everything else. Who reads a part that fits has it.
    private func room(for file: PlaceholderFile, _ id: ObjectIdentifier) throws(FillError) -> Int64 {
        let room: Int64
        do throws(Errno) { room = try replica.tree.freeBytes() - Self.roomLeft } catch { throw .system(error) }
        let unserved = state.withLock { $0.files[id]?.waiters.filter { !$0.value.isServed(by: file) } ?? [:] }
        let demands = unserved.mapValues { waiter in
            file.missing(in: waiter.range).reduce(0) { $0 + Int64($1.count) }
        }
        let tooLarge = demands.filter { $0.value > 0 && $0.value > room }.keys
        guard tooLarge.isEmpty || tooLarge.count < demands.count else { throw .system(.noSpace) }
        let refused = state.withLock { state in
            tooLarge.compactMap { state.files[id]?.waiters.removeValue(forKey: $0) }
        }
        for waiter in refused { waiter.completion(.system(.noSpace)) }
        return max(room, 0)
    }

    /// What to fetch next; `nil` (and the pump is marked as stopped) when nobody waits any more.
    private func nextRange(_ file: PlaceholderFile, _ id: ObjectIdentifier, _ room: Int64) -> Range<Int64>? {
        let size = file.placeholder.size
        let largest = min(Self.largestWindow, room)
        return state.withLock { state in
            guard var entry = state.files[id] else { return nil }
            // Asked once: what is not fetched for it is put off for it.
            let isRestrained = restraint.isOn
            if !file.isDiscarded, !file.isWhole {
                // Who reads a part waits for that alone, and not for the rest of what somebody wants whole.
                let first = entry.waiters.lazy.filter { !file.missing(in: $0.value.range).isEmpty }
                    .min { ($0.value.isEngine ? 1 : 0, $0.key) < ($1.value.isEngine ? 1 : 0, $1.key) }?.value
                if let first, let start = file.missing(in: first.range).first?.lowerBound {
                    return
                        start..<min(
                            size,
                            max(
                                min(first.range.upperBound, start + Self.largestWindow),
                                start + min(entry.window, largest)
                            )
                        )
                }
                if entry.wantsRest, entry.openCount > 0, !isRestrained, room >= Self.largestWindow {
                    if let start = file.missing(in: 0..<size).first?.lowerBound {
                        return start..<min(size, start + Self.largestWindow / 2)
                    }
                }
            }
            // A waiter whose range came meanwhile is completed by the caller.
            entry.isPumping = false
            entry.putOff = nil
            state.files[id] = entry
            if entry.wantsRest, entry.openCount > 0, isRestrained { state.putOffRest(id) }
            state.finishing.append(file)
            return nil
        }
    }

    /// What to fetch while the last of what was asked for is still on its way: only where reading has gone on for long, or all of it is
    /// wanted, and nobody waits for anything else.
    private func rangeAhead(
        _ file: PlaceholderFile,
        _ id: ObjectIdentifier,
        after asked: Range<Int64>,
        _ room: Int64
    ) -> Range<Int64>? {
        guard room >= 2 * Self.largestWindow, !file.isDiscarded, !file.isWhole else { return nil }
        let size = file.placeholder.size
        return state.withLock { state in
            guard let entry = state.files[id], state.obstacle == nil else { return nil }
            guard entry.openCount > 0, entry.wantsRest, !restraint.isOn else { return nil }
            let elsewhere = entry.waiters.values.contains { waiter in
                file.missing(in: waiter.range).contains {
                    $0.lowerBound < asked.lowerBound || $0.lowerBound > asked.upperBound
                }
            }
            guard !elsewhere, let start = file.missing(in: asked.upperBound..<size).first?.lowerBound else {
                return nil
            }
            return start..<min(size, start + Self.largestWindow)
        }
    }

    func completeServed(_ id: ObjectIdentifier) {
        let (served, restart, unused): ([Waiter], PlaceholderFile?, PlaceholderFile?) = state.withLock { state in
            guard var entry = state.files[id] else { return ([], nil, nil) }
            var served = [Waiter]()
            for (number, waiter) in entry.waiters where waiter.isServed(by: entry.file) {
                served.append(waiter)
                entry.waiters[number] = nil
            }
            // Someone asked just when the pump stopped.
            let restart = !entry.isPumping && !entry.waiters.isEmpty
            if restart { entry.isPumping = true }
            let isUnused = entry.openCount <= 0 && entry.waiters.isEmpty && !entry.isPumping
            let file = entry.file
            state.files[id] = isUnused ? nil : entry
            return (served, restart ? file : nil, isUnused ? file : nil)
        }
        for waiter in served { waiter.completion(nil) }
        if let restart { startPump(restart) }
        if let unused { remember(unused) }
    }

    private func finish(_ file: PlaceholderFile) async throws(FillError) {
        do {
            let finished = try await BlockingPool.shared.run { try file.finish() }
            becameWhole(file, finished)
        } catch let error as Errno {
            throw .system(error)
        } catch {
            throw .corrupted("\(error)")
        }
    }

    /// - Parameter obstacles: how many there had been when the pump began.
    private func fail(_ id: ObjectIdentifier, _ error: FillError, _ obstacles: UInt64) {
        let (waiting, restart, unused): ([Waiter], PlaceholderFile?, PlaceholderFile?) = state.withLock { state in
            guard var entry = state.files[id] else { return ([], nil, nil) }
            // What ended it is over, and whoever waits now has come since: he is not told of that.
            if state.obstacles != obstacles, state.obstacle == nil, !entry.waiters.isEmpty {
                return ([], entry.file, nil)
            }
            let waiting = Array(entry.waiters.values)
            entry.waiters.removeAll()
            entry.isPumping = false
            entry.wantsRest = false
            state.files[id] = entry.openCount > 0 ? entry : nil
            return (waiting, nil, entry.openCount > 0 ? nil : entry.file)
        }
        for waiter in waiting { waiter.completion(error) }
        if let restart { startPump(restart) }
        if let unused { remember(unused) }
    }

    /// - Returns: where the content comes from, and whether who waits for it is parked until it has come to the cloud.
    private func sourceOrPark(
        _ file: PlaceholderFile,
        _ id: ObjectIdentifier
    ) async throws(FillError) -> (Source, isParked: Bool) {
        while true {
            let arrivals = state.withLock(\.arrivals)
            let source = try await source(of: file, id)
            guard source.manifest == nil else { return (source, false) }
            if await park(id, source, asOf: arrivals) { return (source, true) }
        }
    }

    /// The author has announced the item, its content is on its way: who waits for it stays, for a while.
    /// - Returns: false if contents have arrived since that was looked up.
    private func park(_ id: ObjectIdentifier, _ source: Source, asOf arrivals: UInt64) async -> Bool {
        let numbers: (parked: [UInt64], impatient: [UInt64])? = state.withLock { state in
            guard state.arrivals == arrivals else { return nil }
            state.files[id]?.isPumping = false
            let waiters = state.files[id]?.waiters ?? [:]
            let parked = waiters.filter(\.value.waitsForAuthor).keys
            return (Array(parked), waiters.keys.filter { !parked.contains($0) })
        }
        guard let (parked, impatient) = numbers else { return false }
        end(impatient, of: id, .wouldWait)
        guard !parked.isEmpty else { return true }
        Task { [weak self, patience] in
            try? await Task.sleep(for: patience)
            self?.end(parked, of: id, .unsent(author: source.author))
        }
        do throws(FillError) {
            if try await downloader.isGone(author: source.author) { end(parked, of: id, .authorGone(source.author)) }
        } catch {
            // Nothing arrives while the server is not reached.
            end(parked, of: id, error)
        }
        return true
    }

    /// Those of the waiters that still wait for what is only announced are told that it does not come.
    private func end(_ numbers: [UInt64], of id: ObjectIdentifier, _ error: FillError) {
        let waiting: [Waiter] = state.withLock { state in
            guard var entry = state.files[id], entry.source?.manifest == nil else { return [] }
            let waiting = numbers.compactMap { entry.waiters.removeValue(forKey: $0) }
            let isUnused = entry.openCount <= 0 && entry.waiters.isEmpty && !entry.isPumping
            state.files[id] = isUnused ? nil : entry
            return waiting
        }
        for waiter in waiting { waiter.completion(error) }
    }

    private func source(of file: PlaceholderFile, _ id: ObjectIdentifier) async throws(FillError) -> Source {
        if let known = state.withLock({ $0.files[id]?.source }), known.manifest != nil { return known }
        let found = try await downloader.source(of: file)
        state.withLock { $0.files[id]?.source = found }
        return found
    }

    /// Keeps the ranges that are here for the next open, once they are on the disk.
    func remember(_ file: PlaceholderFile) {
        guard !file.isWhole, !file.isDiscarded else { return }
        let (replica, grew) = (replica, grew)
        BlockingPool.shared.submit {
            try? RangeStore.save(file, in: replica)
            grew()
        }
    }
}
