import Chunking
import CloudClient
package import Driver
import Logging
package import Replica
import Synchronization
package import SystemPackage
import UbiquityModel

/// Fetches the content of dataless files that programs have open, in the order in which it is needed: what a read waits for,
/// then read-ahead that grows while reading goes on, then the rest (semantics section 3). What it writes was verified before.
package final class ContentFiller: Sendable {
    /// The first read fetches at least this much, in bytes.
    static let smallestWindow: Int64 = 128 * 1024
    static let largestWindow: Int64 = 16 * 1024 * 1024
    /// Bytes of the disk that content leaves free: the state database needs some to go on.
    static let roomLeft: Int64 = 4 * 1024 * 1024
    /// So much of a large range is still to come when the next one is asked for: the server then goes on without a pause.
    static let overlap: Int64 = 2 * 1024 * 1024
    /// How long a handle must stay open before the rest follows by itself.
    static let openBeforeRest = Duration.seconds(1)

    /// Where a file's content comes from.
    struct Source: Sendable {
        var item: ItemID
        var place: Place
        /// `nil`: announced, but not in the cloud yet.
        var manifest: Manifest?
        /// Of what is only announced; empty if that is not known.
        var author = ""
    }

    private struct Waiter: Sendable {
        var range: Range<Int64>
        var waitsForAuthor: Bool
        /// The engine wants all of it; who reads may go on to the next file.
        var isEngine = false
        var completion: @Sendable (FillError?) -> Void

        /// Who reads has what it needs when the bytes are there; the engine when the file is whole, and says so.
        func isServed(by file: PlaceholderFile) -> Bool {
            file.isDiscarded || (isEngine ? file.isWhole : file.contains(range))
        }
    }

    private struct FileState: Sendable {
        var file: PlaceholderFile
        var waiters: [UInt64: Waiter] = [:]
        var isPumping = false
        var openCount = 0
        /// Reading goes on, or the handle has been open for a while: the rest follows.
        var wantsRest = false
        /// A moment from now that will be so, if it stays open.
        var restIsDue = false
        var source: Source?
        var window = ContentFiller.smallestWindow
        var lastEnd: Int64 = 0
    }

    private struct State: Sendable {
        var files: [ObjectIdentifier: FileState] = [:]
        /// Nothing of them is fetched any more; they are about to become whole.
        var finishing: [PlaceholderFile] = []
        var endWaiters: [InodeKey: [CheckedContinuation<Void, Never>]] = [:]
        var nextWaiter: UInt64 = 0
        /// Why nothing can be fetched at the moment.
        var obstacle: FillError?
        /// Nothing will be fetched any more.
        var isSignedOut = false

        var coming: [PlaceholderFile] { files.values.filter(\.isPumping).map(\.file) + finishing }
    }

    /// Guards memory only; never held while a completion runs.
    private let state = Mutex(State())
    private let downloader: Downloader
    private let replica: Replica
    private let cost: LinkCost
    /// How long a read waits for content that its author has not sent yet.
    private let patience: Duration
    private let logger: Logger
    /// Tells the engine that a file has become whole.
    private let becameWhole: @Sendable (PlaceholderFile, LocalState) -> Void
    /// Tells it that somebody waits for a file.
    private let missed: @Sendable (PlaceholderFile, Place) -> Void
    /// Tells it that more of some file is here.
    private let grew: @Sendable () -> Void

    init(
        downloader: Downloader,
        replica: Replica,
        cost: LinkCost,
        patience: Duration,
        logger: Logger,
        becameWhole: @escaping @Sendable (PlaceholderFile, LocalState) -> Void,
        missed: @escaping @Sendable (PlaceholderFile, Place) -> Void,
        grew: @escaping @Sendable () -> Void
    ) {
        self.downloader = downloader
        self.replica = replica
        self.cost = cost
        self.patience = patience
        self.logger = logger
        self.becameWhole = becameWhole
        self.missed = missed
        self.grew = grew
    }

    // MARK: The driver's side

    package func opened(_ file: PlaceholderFile) {
        state.withLock { state in
            state.files[ObjectIdentifier(file), default: FileState(file: file)].openCount += 1
        }
    }

    /// A program that may fetch content has opened it, or has read from it: if it stays open for a while, the rest follows. Not for
    /// those that may not, however long they keep it open.
    package func restMayFollow(of file: PlaceholderFile) {
        let isNew: Bool = state.withLock { state in
            let id = ObjectIdentifier(file)
            guard let entry = state.files[id], entry.openCount > 0 else { return false }
            guard !entry.wantsRest, !entry.restIsDue else { return false }
            state.files[id]?.restIsDue = true
            return true
        }
        guard isNew else { return }
        // A file that is closed before is not kept open by this.
        Task { [weak self, weak file] in
            try? await Task.sleep(for: Self.openBeforeRest)
            if let file { self?.wantRest(of: file) }
        }
    }

    package func closed(_ file: PlaceholderFile) {
        let remains: Bool = state.withLock { state in
            let id = ObjectIdentifier(file)
            guard var entry = state.files[id] else { return false }
            entry.openCount -= 1
            if entry.openCount <= 0 { entry.wantsRest = false }
            let isUnused = entry.openCount <= 0 && entry.waiters.isEmpty && !entry.isPumping
            state.files[id] = isUnused ? nil : entry
            return !isUnused
        }
        if !remains { remember(file) }
    }

    /// Calls `completion` once: `nil` when the range can be read from the file.
    /// - Parameter waitsForAuthor: false: what has not reached the cloud yet is EAGAIN at once.
    package func need(
        _ file: PlaceholderFile,
        range: Range<Int64>,
        waitsForAuthor: Bool,
        completion: @escaping @Sendable (Errno?) -> Void
    ) -> ContentRequest {
        need(file, Waiter(range: range, waitsForAuthor: waitsForAuthor) { completion($0?.errno) })
    }

    private func need(_ file: PlaceholderFile, _ waiter: Waiter) -> ContentRequest {
        let (range, completion) = (waiter.range, waiter.completion)
        if waiter.isServed(by: file) {
            completion(nil)
            return ContentRequest(cancel: {})
        }
        let id = ObjectIdentifier(file)
        let (number, start): (Result<UInt64, FillError>, Bool) = state.withLock { state in
            if let obstacle = state.obstacle { return (.failure(obstacle), false) }
            state.nextWaiter += 1
            var entry = state.files[id] ?? FileState(file: file)
            entry.waiters[state.nextWaiter] = waiter
            noteRead(&entry, range)
            let start = !entry.isPumping
            entry.isPumping = true
            state.files[id] = entry
            return (.success(state.nextWaiter), start)
        }
        switch number {
        case .failure(let obstacle):
            completion(obstacle)
            return ContentRequest(cancel: {})
        case .success(let number):
            if start { startPump(file) }
            restMayFollow(of: file)
            return ContentRequest { [weak self] in self?.cancel(number, of: id) }
        }
    }

    private func noteRead(_ entry: inout FileState, _ range: Range<Int64>) {
        if cost.isMetered {
            entry.window = Self.smallestWindow
        } else if range.lowerBound >= entry.lastEnd - 1024 * 1024, range.lowerBound <= entry.lastEnd + entry.window,
            entry.lastEnd > 0
        {
            entry.window = min(entry.window * 2, Self.largestWindow)
            if entry.window == Self.largestWindow { entry.wantsRest = true }
        } else {
            entry.window = Self.smallestWindow
        }
        entry.lastEnd = range.upperBound
        if range == 0..<entry.file.placeholder.size { entry.window = Self.largestWindow }
    }

    private func cancel(_ number: UInt64, of id: ObjectIdentifier) {
        let waiter = state.withLock { $0.files[id]?.waiters.removeValue(forKey: number) }
        waiter?.completion(.cloud(.cancelled))
    }

    private func wantRest(of file: PlaceholderFile) {
        let id = ObjectIdentifier(file)
        let isMetered = cost.isMetered
        let start: Bool = state.withLock { state in
            state.files[id]?.restIsDue = false
            guard var entry = state.files[id], entry.openCount > 0, state.obstacle == nil, !isMetered else {
                return false
            }
            entry.wantsRest = true
            let start = !entry.isPumping
            entry.isPumping = true
            state.files[id] = entry
            return start
        }
        if start { startPump(file) }
    }

    // MARK: The engine's side

    /// Fetches all of a file that some handle keeps open; returns when it is whole, or the waiting task is cancelled.
    func fetchWhole(_ file: PlaceholderFile) async -> FillError? {
        let size = file.placeholder.size
        let asked = Mutex<ContentRequest?>(nil)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waiter = Waiter(range: 0..<size, waitsForAuthor: true, isEngine: true) {
                    continuation.resume(returning: $0)
                }
                let request = need(file, waiter)
                asked.withLock { $0 = request }
                // Cancelled before there was anything to call off.
                if Task.isCancelled { request.cancel() }
            }
        } onCancel: {
            asked.withLock { $0 }?.cancel()
        }
    }

    /// The files of which programs and the engine are just having parts fetched, or have had since they opened them, and how much of each is
    /// here. What of it is written down, the database knows as well.
    func parts() -> [(key: InodeKey, bytes: Int64)] {
        let files = state.withLock { $0.files.values.map(\.file) }
        return files.filter { !$0.isDiscarded && !$0.isWhole }.map { ($0.key, $0.present.count) }
    }

    /// The file that programs have open at this inode, if any.
    func openFile(_ key: InodeKey) -> PlaceholderFile? {
        state.withLock { state in state.files.values.first { $0.file.key == key && !$0.file.isDiscarded }?.file }
    }

    /// The files of which content is on its way, whoever asked for it and whether or not he still waits. Of one that was replaced or given up
    /// nothing comes any more, and its transfer may take as long as a server that does not answer.
    func coming() -> Set<InodeKey> {
        state.withLock { state in Set(state.coming.lazy.filter { !$0.isDiscarded }.map(\.key)) }
    }

    /// Returns when nothing more of that file is on its way.
    func ended(_ key: InodeKey) async {
        await withCheckedContinuation { continuation in
            let isComing = state.withLock { state in
                guard state.coming.contains(where: { $0.key == key }) else { return false }
                state.endWaiters[key, default: []].append(continuation)
                return true
            }
            if !isComing { continuation.resume() }
        }
    }

    private func tellEnded() {
        let ended: [CheckedContinuation<Void, Never>] = state.withLock { state in
            guard !state.endWaiters.isEmpty else { return [] }
            let coming = Set(state.coming.map(\.key))
            let ended = state.endWaiters.filter { !coming.contains($0.key) }
            for key in ended.keys { state.endWaiters[key] = nil }
            return ended.values.flatMap { $0 }
        }
        for waiter in ended { waiter.resume() }
    }

    // MARK: Ahead of reading

    /// These are about to be fetched by somebody else than the pump, who says so by `served` and ends with `endAhead`.
    /// - Returns: those that nobody fetches yet.
    func beginAhead(_ files: [PlaceholderFile]) -> [PlaceholderFile] {
        state.withLock { state in
            guard state.obstacle == nil else { return [] }
            return files.filter { file in
                var entry = state.files[ObjectIdentifier(file)] ?? FileState(file: file)
                guard !entry.isPumping else { return false }
                entry.isPumping = true
                state.files[ObjectIdentifier(file)] = entry
                return true
            }
        }
    }

    /// Bytes of it have come.
    func served(_ file: PlaceholderFile) { completeServed(ObjectIdentifier(file)) }

    /// What did not come, and somebody waits for, is fetched now.
    func endAhead(_ files: [PlaceholderFile]) {
        state.withLock { state in
            for file in files { state.files[ObjectIdentifier(file)]?.isPumping = false }
        }
        for file in files { completeServed(ObjectIdentifier(file)) }
        tellEnded()
    }

    /// All that are complete become whole, with one sync for all of them.
    func finish(_ files: [PlaceholderFile]) async throws(Errno) {
        let replica = replica
        let finished = try? await BlockingPool.shared.run { () -> Result<[(PlaceholderFile, LocalState)], Errno> in
            let complete = files.filter { $0.isComplete && !$0.isWhole && !$0.isDiscarded }
            do throws(Errno) { try replica.tree.synchronize() } catch { return .failure(error) }
            // One that was truncated or evicted meanwhile is left out.
            return .success(
                complete.compactMap { file in (try? file.finish(isDurable: true)).map { (file, $0) } }
            )
        }
        // The closure does not throw, and the pool throws nothing of its own.
        for (file, state) in try finished?.get() ?? [] { becameWhole(file, state) }
    }

    func setOffline(_ offline: Bool) { setObstacle(offline ? Self.switchedOff : nil) }

    /// Nothing is fetched any more: EACCES.
    func signOut() { setObstacle(Self.signedOut, isLasting: true) }

    private func setObstacle(_ obstacle: FillError?, isLasting: Bool = false) {
        let waiting: [Waiter] = state.withLock { state in
            guard !state.isSignedOut else { return [] }
            state.isSignedOut = isLasting
            state.obstacle = obstacle
            guard obstacle != nil else { return [] }
            var waiting = [Waiter]()
            for id in state.files.keys {
                waiting += state.files[id]?.waiters.values.map { $0 } ?? []
                state.files[id]?.waiters.removeAll()
            }
            return waiting
        }
        for waiter in waiting { waiter.completion(obstacle) }
    }

    private static let switchedOff = FillError.cloud(.offline("this device was switched offline"))
    private static let signedOut = FillError.cloud(.unauthorized("this device was signed out"))

    /// Content that was only announced has reached the cloud, or never will: whoever waits for it is told.
    func contentArrived(for item: ItemID) {
        let files: [PlaceholderFile] = state.withLock { state in
            var files = [PlaceholderFile]()
            for (id, entry) in state.files
            where !entry.isPumping && entry.source?.item == item && !entry.waiters.isEmpty {
                state.files[id]?.source = nil
                state.files[id]?.isPumping = true
                files.append(entry.file)
            }
            return files
        }
        for file in files { startPump(file) }
    }

    // MARK: The pump

    private func startPump(_ file: PlaceholderFile) { Task { await self.pump(file) } }

    private func pump(_ file: PlaceholderFile) async {
        let id = ObjectIdentifier(file)
        do throws(FillError) {
            let source = try await source(of: file, id)
            guard let manifest = source.manifest else {
                await park(id, source)
                return tellEnded()
            }
            // What is downloaded by name becomes whole file by file, and no others with it.
            if file.placeholder.offset == nil, !isWantedByEngine(id) { missed(file, source.place) }
            try await fill(file, id, source, manifest)
            // Once the transfer has ended for whoever asks.
            completeServed(id)
        } catch {
            logger.info("cannot fetch", metadata: ["revision": "\(file.placeholder.revision)", "why": "\(error)"])
            fail(id, error)
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
        while let range = nextRange(file, id, try room(for: file, id)) {
            try await fetch(range, file, id, index, token)
            completeServed(id)
        }
        defer {
            state.withLock { state in
                if let index = state.finishing.firstIndex(where: { $0 === file }) { state.finishing.remove(at: index) }
            }
        }
        if file.missing(in: 0..<index.size).isEmpty, !file.isDiscarded, !file.isWhole { try await finish(file) }
    }

    /// Fetches a range, and what follows it: of long ones, the next is asked for shortly before the last bytes have come.
    private func fetch(
        _ range: Range<Int64>,
        _ file: PlaceholderFile,
        _ id: ObjectIdentifier,
        _ index: ChunkIndex,
        _ token: UInt64
    ) async throws(FillError) {
        var running = start(range, file, id, index, token)
        while running.range.count > Self.largestWindow / 4 {
            await running.nearEnd.wait()
            guard let room = try? room(for: file, id), let next = rangeAhead(file, id, after: running.range, room)
            else {
                break
            }
            let following = start(next, file, id, index, token)
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
        _ token: UInt64
    ) -> Fetch {
        let nearEnd = Milestone()
        let wanted = index.entries(covering: file.missing(in: range))
        let range = range.lowerBound..<max(range.upperBound, wanted.last?.range.upperBound ?? 0)
        let last = max(range.lowerBound, range.upperBound - Self.overlap)
        let written: @Sendable () -> Void = { [weak self] in
            if file.contains(range.lowerBound..<last) { nearEnd.reach() }
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
    /// a file that will not fit does not take the last room from everything else.
    private func room(for file: PlaceholderFile, _ id: ObjectIdentifier) throws(FillError) -> Int64 {
        let waiting = state.withLock { $0.files[id]?.waiters.values.map(\.range) ?? [] }
        let demanded = waiting.map { range in file.missing(in: range).reduce(0) { $0 + Int64($1.count) } }.max() ?? 0
        let room: Int64
        do throws(Errno) { room = try replica.tree.freeBytes() - Self.roomLeft } catch { throw .system(error) }
        guard demanded == 0 || demanded <= room else { throw .system(.noSpace) }
        return max(room, 0)
    }

    /// What to fetch next; `nil` (and the pump is marked as stopped) when nobody waits any more.
    private func nextRange(_ file: PlaceholderFile, _ id: ObjectIdentifier, _ room: Int64) -> Range<Int64>? {
        let size = file.placeholder.size
        let largest = min(Self.largestWindow, room)
        return state.withLock { state in
            guard var entry = state.files[id] else { return nil }
            if !file.isDiscarded, !file.isWhole {
                let first = entry.waiters.min { $0.key < $1.key }?.value
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
                if entry.wantsRest, entry.openCount > 0, room >= Self.largestWindow {
                    if let start = file.missing(in: 0..<size).first?.lowerBound {
                        return start..<min(size, start + Self.largestWindow / 2)
                    }
                }
            }
            // A waiter whose range came meanwhile is completed by the caller.
            entry.isPumping = false
            state.files[id] = entry
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
            guard entry.openCount > 0, entry.wantsRest else { return nil }
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

    private func completeServed(_ id: ObjectIdentifier) {
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

    private func fail(_ id: ObjectIdentifier, _ error: FillError) {
        let (waiting, unused): ([Waiter], PlaceholderFile?) = state.withLock { state in
            guard var entry = state.files[id] else { return ([], nil) }
            let waiting = Array(entry.waiters.values)
            entry.waiters.removeAll()
            entry.isPumping = false
            entry.wantsRest = false
            state.files[id] = entry.openCount > 0 ? entry : nil
            return (waiting, entry.openCount > 0 ? nil : entry.file)
        }
        for waiter in waiting { waiter.completion(error) }
        if let unused { remember(unused) }
    }

    /// The author has announced the item, its content is on its way: who waits for it stays, for a while.
    private func park(_ id: ObjectIdentifier, _ source: Source) async {
        let (parked, impatient): ([UInt64], [UInt64]) = state.withLock { state in
            state.files[id]?.isPumping = false
            let waiters = state.files[id]?.waiters ?? [:]
            let parked = waiters.filter(\.value.waitsForAuthor).keys
            return (Array(parked), waiters.keys.filter { !parked.contains($0) })
        }
        end(impatient, of: id, .wouldWait)
        guard !parked.isEmpty else { return }
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
    private func remember(_ file: PlaceholderFile) {
        guard !file.isWhole, !file.isDiscarded else { return }
        let (replica, grew) = (replica, grew)
        BlockingPool.shared.submit {
            try? RangeStore.save(file, in: replica)
            grew()
        }
    }
}
