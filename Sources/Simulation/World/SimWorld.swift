import EngineCore
import Logging
import UbiquityModel

/// What can happen in a world, besides what programs do; each occurrence is counted.
package enum SimCounter: String, CaseIterable, Sendable {
    case passes, mutations, busy, fills, arrivals, largeTransfers, connectionsLost
    case requestLost, answerLost, kills, networkCuts, powerLosses, backupsRestored, clockJumps
    case serverRestored, disksFull, diskFailures, quotasUsedUp, networkDeaf, writesTorn, devicesRevoked, disksCloned
    case creates, writes, safeSaves, renames, exchanges, deletions, foldersMade, foldersRemoved, attributes, links
    case evictions, openHandles, conflicts, chunksCollected, cleanStops, treesSetBack, rules, packages, twinsRefused
    /// What a program did while a pass looked, between one place and the next.
    case races
    /// Two files that a program has swapped in three moves.
    case swaps
    /// Links that a program has given another target.
    case relinks
    /// Renames of which the driver told late.
    case lateWords
    /// What has a name that is not synced, on one device, in the end.
    case leftToItself
    /// Names that a program has given files besides those that they have.
    case hardLinks
    /// Changes of files that have names as SQLite gives them to what it has beside a database.
    case databases
    /// Names in unpopulated folders that got an inode since a program asked for them.
    case populations
    /// Acts of the engine that a program's claim has put off.
    case claims
    /// Acts of programs on a device on which alone anything happens.
    case alone
    /// A content that nobody has removed or written over outlived only as a saved version, and was thinned: a device was killed between
    /// putting another content there and writing that down, or its folder was set back, say. One world in 1,000.
    case onlySaved
}

/// Devices, their programs, a network and a server in virtual time: one schedule, decided by its seed.
final class SimWorld {
    let seed: UInt64
    var random: SimRandom
    private(set) var now = Duration.zero
    private let executor: SimExecutor
    private let isolation: SimIsolation
    private var events = SimEvents()
    private(set) var machines: [SimMachine] = []
    var cloud: SimCloud
    private var cloudBackup: SimCloud?
    private var headCounter: UInt64 = 0
    /// While programs work and things go wrong.
    var isTroubled = true
    /// Per cent.
    let faultRate: Int
    let settings: SimSettings
    private(set) var counts: [SimCounter: Int] = [:]
    /// What went wrong, if anything did.
    private(set) var failure: String?
    private(set) var story: [String] = []
    let keepsStory: Bool
    /// Of everything that happened, in order.
    private(set) var trace: UInt64 = 0xcbf2_9ce4_8422_2325
    var ledger = SimLedger()
    var indexes = SimIndexes()

    init(seed: UInt64, settings: SimSettings, keepsStory: Bool) throws {
        self.seed = seed
        self.keepsStory = keepsStory
        var random = SimRandom(seed: seed)
        executor = SimExecutor(random: random.split())
        isolation = SimIsolation(executor: executor)
        let rate = [0, 1, 3, 8][random.below(4)]
        faultRate = settings.faults == nil ? rate : max(rate, 1)
        self.settings = settings
        let drawn = 2 + random.below(3)
        let count = settings.devices ?? drawn
        self.random = random
        cloud = try SimCloud(at: Self.timeOfDay(.zero), isCaseInsensitive: settings.isCaseInsensitive)
        for number in 0..<count { machines.append(try SimMachine(number: number, world: self)) }
    }

    private static func timeOfDay(_ now: Duration) -> Timestamp {
        let parts = now.components
        return Timestamp(seconds: 1_700_000_000 + parts.seconds, nanoseconds: parts.attoseconds / 1_000_000_000)
    }

    var timeOfDay: Timestamp { Self.timeOfDay(now) }

    func logger(_ name: String) -> Logger {
        guard keepsStory else { return Logger(label: name) { _ in SwiftLogNoOpLogHandler() } }
        return Logger(label: name) { _ in SimLog { [unowned self] text in tell("\(name): \(text)") } }
    }

    // MARK: Events

    func at(_ moment: Duration, _ body: @escaping () -> Void) { events.add(at: moment, body) }

    /// - Parameter range: Microseconds.
    func later(_ range: ClosedRange<Int>, _ body: @escaping () -> Void) {
        at(now + random.duration(range), body)
    }

    func task(_ body: @escaping () async -> Void) {
        let body = SimBody(run: body)
        let isolation = isolation
        Task(executorPreference: executor) { await isolation.run(body) }
    }

    func pause(_ range: ClosedRange<Int>) async {
        let moment = now + random.duration(range)
        await withCheckedContinuation { continuation in
            at(moment) { continuation.resume() }
        }
    }

    /// Runs until a moment, until nothing happens any more, or until something is wrong.
    func run(until end: Duration) {
        executor.runAll()
        while failure == nil, let next = events.next, next <= end, let body = events.removeFirst() {
            now = next
            cloud.timeOfDay = timeOfDay
            body()
            executor.runAll()
        }
        if failure == nil { now = max(now, end) }
    }

    /// Its parts know each other: they are let go.
    func end() {
        events = SimEvents()
        for machine in machines { machine.end() }
        machines = []
    }

    // MARK: The network

    func happens(_ fault: SimFault) -> Bool {
        if settings.has(.alone) { return false }
        guard isTroubled, faultRate > 0, settings.faults?.contains(fault) ?? true, random.happens(faultRate) else {
            return false
        }
        count(fault.counter)
        return true
    }

    /// Tells the other devices, if there is something to tell.
    func cloudMayHaveChanged() {
        let head = cloud.head.counter
        guard head != headCounter else { return }
        headCounter = head
        for machine in machines {
            guard let device = machine.device else { continue }
            device.later(300...6_000) { $0.cloudChanged() }
        }
    }

    /// Rules were announced by what was lost with a disk or with a backup: its person reads for what others wait, and removes it.
    func removeLostDevices() {
        for name in cloud.announcersOfRules where !machines.contains(where: { $0.credentials.name == name }) {
            guard cloud.revoke(named: name) else { continue }
            note("\(name), which is lost, is removed")
        }
    }

    /// Another device, or its person, takes its rights away.
    func revoke(_ machine: SimMachine) {
        guard cloud.revoke(machine.credentials) else { return }
        count(.devicesRevoked)
        note("\(machine.name) is removed from the account")
        machine.device?.later(1_000...1_000_000) { $0.loseConnection() }
    }

    func setQuotaUsed(_ isUsed: Bool) {
        guard cloud.isQuotaUsed != isUsed else { return }
        cloud.isQuotaUsed = isUsed
        if isUsed { count(.quotasUsedUp) }
        note(isUsed ? "the quota is used up" : "there is room again")
    }

    func collectChunks() {
        do {
            guard try cloud.collectChunks() > 0 else { return }
            count(.chunksCollected)
            note("the server collects chunks")
        } catch {
            fail("chunks cannot be collected: \(error)")
        }
    }

    func backUpCloud() { cloudBackup = cloud }

    /// All that was told since then is lost, with the contents that nobody else has.
    func restoreCloud() {
        guard let backup = cloudBackup else { return }
        cloudBackup = nil
        count(.serverRestored)
        note("the server's backup is restored")
        let lost = (try? cloud.kept()) ?? []
        cloud = backup
        headCounter = cloud.head.counter
        let left = ((try? cloud.kept()) ?? []).union(machines.flatMap { $0.disk.lastingTokens })
        ledger.destroy(lost.subtracting(left).sorted())
        for machine in machines { machine.device?.loseConnection() }
    }

    // MARK: The record

    func count(_ counter: SimCounter) {
        counts[counter, default: 0] += 1
        mix(counter.rawValue.utf8.reduce(UInt64(0)) { $0 &* 31 &+ UInt64($1) })
    }

    func note(_ text: @autoclosure () -> String) {
        mix(UInt64(now.components.attoseconds / 1_000_000_000_000))
        if keepsStory { tell(text()) }
    }

    private func tell(_ text: String) { story.append("\(now) \(text)") }

    private func mix(_ word: UInt64) { trace = (trace ^ word) &* 0x100_0000_01b3 }

    func fail(_ reason: String) {
        if failure == nil { failure = reason }
    }

    /// In other words.
    func failAgain(_ reason: String) { failure = reason }
}

/// Every content that a program ever wrote.
struct SimLedger {
    private var count: UInt64 = 0
    /// What a program has itself written over or removed, having had it before its eyes: it may go.
    private(set) var destroyed: Set<UInt64> = []
    private(set) var authors: [UInt64: String] = [:]

    mutating func newToken(_ author: String) -> UInt64 {
        count += 1
        authors[count] = author
        return count
    }

    mutating func destroy(_ tokens: [UInt64]) { destroyed.formUnion(tokens) }

    /// What somebody has removed or replaced before its content had come to the cloud: name and size were all that could be seen.
    private(set) var unseen: Set<RevisionID> = []

    mutating func destroy(_ revision: RevisionID) { unseen.insert(revision) }

    // MARK: What links lead to

    private var targetCount: UInt64 = 0
    private var destroyedTargets: Set<UInt64> = []

    mutating func newTarget(_ author: String) -> [UInt8] {
        targetCount += 1
        return Array("target \(targetCount) of \(author)".utf8)
    }

    mutating func destroy(target: [UInt8]) {
        if let number = Self.number(of: target) { destroyedTargets.insert(number) }
    }

    private static func number(of target: [UInt8]) -> UInt64? {
        let words = String(decoding: target, as: UTF8.self).split(separator: " ")
        return words.count > 1 && words[0] == "target" ? UInt64(words[1]) : nil
    }

    /// Those that a program has given, none has replaced or removed, and that are not among these.
    func lostTargets(besides targets: some Sequence<[UInt8]>) -> [UInt64] {
        let there = Set(targets.compactMap(Self.number))
        return (0..<targetCount).map { $0 + 1 }.filter { !there.contains($0) && !destroyedTargets.contains($0) }
    }

    var living: [UInt64] { authors.keys.filter { !destroyed.contains($0) }.sorted() }
}
