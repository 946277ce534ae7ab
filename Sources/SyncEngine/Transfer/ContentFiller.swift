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
    /// Files of which the rest comes at the same time, apart from those that somebody reads: each takes a connection of its own, and a
    /// program may keep thousands open.
    static let restsAtOnce = 16

    /// Where a file's content comes from.
    struct Source: Sendable {
        var item: ItemID
        var place: Place
        /// `nil`: announced, but not in the cloud yet.
        var manifest: Manifest?
        /// Of what is only announced; empty if that is not known.
        var author = ""
    }

    struct Waiter: Sendable {
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

    struct FileState: Sendable {
        var file: PlaceholderFile
        var waiters: [UInt64: Waiter] = [:]
        var isPumping = false
        var openCount = 0
        /// Reading goes on, or the handle has been open for a while: the rest follows.
        var wantsRest = false
        /// A moment from now that will be so, if it stays open.
        var restIsDue = false
        /// The rest waits until fewer come, or until a restraint ends; the lowest of these numbers is the next.
        var putOff: UInt64?
        var source: Source?
        var window = ContentFiller.smallestWindow
        var lastEnd: Int64 = 0

        /// Read-ahead grows while reading goes on, where it costs nothing.
        mutating func noteRead(_ range: Range<Int64>, isMetered: Bool) {
            if isMetered {
                window = ContentFiller.smallestWindow
            } else if lastEnd > 0, range.lowerBound >= lastEnd - 1024 * 1024,
                // Not the sum of the two: the end of the largest file is the largest number.
                range.lowerBound - lastEnd <= window
            {
                window = min(window * 2, ContentFiller.largestWindow)
                if window == ContentFiller.largestWindow { wantsRest = true }
            } else {
                window = ContentFiller.smallestWindow
            }
            lastEnd = range.upperBound
            if range == 0..<file.placeholder.size { window = ContentFiller.largestWindow }
        }
    }

    struct State: Sendable {
        var files: [ObjectIdentifier: FileState] = [:]
        /// Nothing of them is fetched any more; they are about to become whole.
        var finishing: [PlaceholderFile] = []
        var endWaiters: [InodeKey: [CheckedContinuation<Void, Never>]] = [:]
        /// Numbers those who wait, and what is put off.
        var nextWaiter: UInt64 = 0
        /// The rest of some file is put off.
        var hasPutOff = false
        /// How often a content has arrived that was only announced before.
        var arrivals: UInt64 = 0
        /// Why nothing can be fetched at the moment.
        var obstacle: FillError?
        /// How often something was in the way: whoever had waited until then was told.
        var obstacles: UInt64 = 0
        /// It is that the server is not reached, which may be over at any moment.
        var isUnreachable = false
        /// Nothing will be fetched any more.
        var isOver = false

        var coming: [PlaceholderFile] { files.values.filter(\.isPumping).map(\.file) + finishing }

        /// Nobody waits for it, has it open or fills it: it need not stay open.
        mutating func dropIfUnused(_ id: ObjectIdentifier) {
            guard let entry = files[id], entry.waiters.isEmpty, entry.openCount <= 0, !entry.isPumping else { return }
            files[id] = nil
        }

        mutating func putOffRest(_ id: ObjectIdentifier) {
            nextWaiter += 1
            files[id]?.putOff = nextWaiter
            hasPutOff = true
        }

        /// As many of those whose rest is put off as may come now, the first ones first: they count as being fetched from here on.
        mutating func takeRests() -> [PlaceholderFile] {
            guard hasPutOff, obstacle == nil else { return [] }
            let room = ContentFiller.restsAtOnce - files.values.count(where: \.isPumping)
            guard room > 0 else { return [] }
            let due = files.filter { _, entry in
                entry.putOff != nil && entry.wantsRest && entry.openCount > 0 && !entry.isPumping
                    && !entry.file.isWhole && !entry.file.isDiscarded
            }
            let taken = due.sorted { $0.value.putOff ?? 0 < $1.value.putOff ?? 0 }.prefix(room)
            for (id, _) in taken {
                files[id]?.putOff = nil
                files[id]?.isPumping = true
            }
            hasPutOff = due.count > taken.count
            return taken.map(\.value.file)
        }
    }

    /// Guards memory only; never held while a completion runs.
    let state = Mutex(State())
    let downloader: Downloader
    let replica: Replica
    let restraint: FetchingRestraint
    /// How long a read waits for content that its author has not sent yet.
    let patience: Duration
    let logger: Logger
    /// Tells the engine that a file has become whole.
    let becameWhole: @Sendable (PlaceholderFile, LocalState) -> Void
    /// Tells it that somebody waits for a file.
    let missed: @Sendable (PlaceholderFile, Place) -> Void
    /// Tells it that more of some file is here.
    let grew: @Sendable () -> Void
    /// Tells it that somebody waits for the server, which is not reached.
    let wanted: @Sendable () -> Void

    init(
        downloader: Downloader,
        replica: Replica,
        restraint: FetchingRestraint,
        patience: Duration,
        logger: Logger,
        becameWhole: @escaping @Sendable (PlaceholderFile, LocalState) -> Void,
        missed: @escaping @Sendable (PlaceholderFile, Place) -> Void,
        grew: @escaping @Sendable () -> Void,
        wanted: @escaping @Sendable () -> Void
    ) {
        self.downloader = downloader
        self.replica = replica
        self.restraint = restraint
        self.patience = patience
        self.logger = logger
        self.becameWhole = becameWhole
        self.missed = missed
        self.grew = grew
        self.wanted = wanted
        restraint.whenEnded { [weak self] in self?.startRests() }
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
            if let obstacle = state.obstacle, !state.isUnreachable { return (.failure(obstacle), false) }
            state.nextWaiter += 1
            var entry = state.files[id] ?? FileState(file: file)
            entry.waiters[state.nextWaiter] = waiter
            entry.noteRead(range, isMetered: restraint.current == .metered)
            let start = !entry.isPumping && state.obstacle == nil
            if start { entry.isPumping = true }
            state.files[id] = entry
            return (.success(state.nextWaiter), start)
        }
        switch number {
        case .failure(let obstacle):
            completion(obstacle)
            return ContentRequest(cancel: {})
        case .success(let number):
            if start {
                startPump(file)
            } else {
                waitForConnection(number, of: id)
            }
            restMayFollow(of: file)
            return ContentRequest { [weak self] in self?.cancel(number, of: id) }
        }
    }

    /// While the server is not reached nobody waits for long; but it may be back, and nobody have asked since.
    private func waitForConnection(_ number: UInt64, of id: ObjectIdentifier) {
        guard state.withLock({ $0.isUnreachable && $0.obstacle != nil }) else { return }
        wanted()
        Task { [weak self] in
            try? await Task.sleep(for: Self.patienceForConnection)
            self?.giveUp(number, of: id)
        }
    }

    private func giveUp(_ number: UInt64, of id: ObjectIdentifier) {
        let (waiter, obstacle): (Waiter?, FillError?) = state.withLock { state in
            guard let obstacle = state.obstacle else { return (nil, nil) }
            defer { state.dropIfUnused(id) }
            return (state.files[id]?.waiters.removeValue(forKey: number), obstacle)
        }
        waiter?.completion(obstacle)
    }

    private func cancel(_ number: UInt64, of id: ObjectIdentifier) {
        let waiter = state.withLock { state in
            defer { state.dropIfUnused(id) }
            return state.files[id]?.waiters.removeValue(forKey: number)
        }
        waiter?.completion(.cloud(.cancelled))
    }

    private func wantRest(of file: PlaceholderFile) {
        let id = ObjectIdentifier(file)
        state.withLock { state in
            state.files[id]?.restIsDue = false
            guard let entry = state.files[id], entry.openCount > 0, state.obstacle == nil, !file.isWhole else { return }
            state.files[id]?.wantsRest = true
            // Who is at it goes on with the rest.
            if !entry.isPumping { state.putOffRest(id) }
        }
        startRests()
    }

    /// What was put off follows, as far as that may be now.
    func startRests() {
        // The restraint is asked under the lock: whoever ends it comes here afterwards, and finds what was put off for it.
        let files: [PlaceholderFile] = state.withLock { state in restraint.isOn ? [] : state.takeRests() }
        for file in files { startPump(file) }
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

    func tellEnded() {
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
            for file in files {
                let id = ObjectIdentifier(file)
                state.files[id]?.isPumping = false
                guard let entry = state.files[id], entry.wantsRest, entry.openCount > 0, !file.isWhole else { continue }
                state.putOffRest(id)
            }
        }
        for file in files { completeServed(ObjectIdentifier(file)) }
        tellEnded()
        startRests()
    }

    /// All that are complete become whole, with one sync for all of them.
    func finish(_ files: [PlaceholderFile]) async throws(Errno) {
        let replica = replica
        let finished = try? await BlockingPool.shared.run { () -> Result<[(PlaceholderFile, LocalState)], Errno> in
            // Also those that the driver has finished since, for who writes to them: nobody else tells the engine.
            let complete = files.filter { $0.isComplete && !$0.isDiscarded }
            do throws(Errno) { try replica.tree.synchronize() } catch { return .failure(error) }
            // One that was truncated or evicted meanwhile is left out.
            return .success(
                complete.compactMap { file in (try? file.finish(isDurable: true)).map { (file, $0) } }
            )
        }
        // The closure does not throw, and the pool throws nothing of its own.
        for (file, state) in try finished?.get() ?? [] { becameWhole(file, state) }
    }

    /// The user wants nothing from the cloud.
    func switchOff() { setObstacle(.cloud(.offline("this device was switched offline"))) }

    /// Nothing comes for now, for that reason. Called again after each attempt that fails: whoever has waited for it is told.
    func becameUnreachable(_ why: String) { setObstacle(.cloud(.offline(why)), isPassing: true) }

    func becameReachable() {
        setObstacle(nil)
        let waiting: [PlaceholderFile] = state.withLock { state in
            let idle = state.files.filter { !$0.value.isPumping && !$0.value.waiters.isEmpty }
            for id in idle.keys { state.files[id]?.isPumping = true }
            return idle.values.map(\.file)
        }
        for file in waiting { startPump(file) }
        startRests()
    }

    /// Nothing is fetched any more: EACCES.
    func signOut() { setObstacle(Self.signedOut, isLasting: true) }

    /// The mount is gone: whoever still waits is told, so that nothing goes on for him.
    func end() { setObstacle(.cloud(.offline("it was unmounted")), isLasting: true) }

    private func setObstacle(_ obstacle: FillError?, isPassing: Bool = false, isLasting: Bool = false) {
        let waiting: [Waiter] = state.withLock { state in
            guard !state.isOver else { return [] }
            state.isOver = isLasting
            state.isUnreachable = isPassing
            state.obstacle = obstacle
            guard obstacle != nil else { return [] }
            state.obstacles += 1
            var waiting = [Waiter]()
            for id in Array(state.files.keys) {
                waiting += state.files[id]?.waiters.values.map { $0 } ?? []
                state.files[id]?.waiters.removeAll()
                state.dropIfUnused(id)
            }
            return waiting
        }
        for waiter in waiting { waiter.completion(obstacle) }
    }

    private static let patienceForConnection = Duration.seconds(1)
    private static let signedOut = FillError.cloud(.unauthorized("this device was signed out"))

    /// Content that was only announced has reached the cloud, or never will: whoever waits for it is told.
    func contentArrived(for item: ItemID) {
        let files: [PlaceholderFile] = state.withLock { state in
            state.arrivals += 1
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
}
