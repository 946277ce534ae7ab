import EngineCore
import Logging
import UbiquityModel

/// A device of a simulated world: what its disk holds, the process that serves it if one runs, and what programs do to it.
final class SimMachine {
    let number: Int
    let name: String
    let world: SimWorld
    var disk: SimDisk
    var claims = SimClaims()
    var database = SimDatabase()
    /// `nil` while no service runs.
    private(set) var device: SimDevice?
    private var devices: [SimDevice] = []
    /// Durable from the moment it is written.
    private(set) var credentials: SimCredentials
    private var credentialsCount: UInt16 = 0
    /// What is on the disk, and in the database, whatever happens.
    private var durable: (disk: SimDisk, database: SimDatabase)
    private var backup: (disk: SimDisk, database: SimDatabase, credentials: SimCredentials)?
    /// Of the container's folder alone.
    private var treeBackup: SimDisk?
    /// Somebody has started it while it was about to end.
    private var startsAgain = false
    /// What it was before its backup was restored, if that was another one by then.
    private var abandoned: SimCredentials?
    /// How far its clock is ahead of the right time.
    private var clockOffset = Duration.zero
    /// Its network is up.
    var isReachable = true
    /// It sends, and hears nothing.
    private(set) var isDeaf = false
    private(set) var isDiskFull = false
    private var isDiskFailing = false
    /// Of the program that acts last: what one does is the same whatever others do.
    var chance = SimRandom(seed: 0)

    /// - Throws: nothing, since nobody else has its token.
    init(number: Int, world: SimWorld) throws {
        self.number = number
        self.world = world
        name = "device \(number)"
        disk = SimDisk(at: world.timeOfDay)
        disk.tellsLinks = world.settings.has(.hardLinks)
        if world.settings.has(.population) { database.beginListing() }
        durable = (disk, database)
        credentials = SimCredentials(name: name, token: [UInt8(number)], nonce: [])
        credentials.name = try world.cloud.join(credentials)
    }

    // MARK: The account

    /// Nobody else ever has these.
    func freshCredentials() -> SimCredentials {
        credentialsCount += 1
        let bytes = [UInt8(number), UInt8(credentialsCount >> 8), UInt8(truncatingIfNeeded: credentialsCount)]
        return SimCredentials(name: credentials.name, token: bytes, nonce: bytes)
    }

    /// Written down before it asks.
    func proposeToken() -> SimCredentials {
        if credentials.proposedToken == nil { credentials.proposedToken = freshCredentials().token }
        return credentials
    }

    func store(_ credentials: SimCredentials) { self.credentials = credentials }

    /// Its person lets it in again, some time after it was told that it is not.
    func joinAgain() {
        world.later(500_000...4_000_000) { [self] in
            var fresh = freshCredentials()
            guard let device, device.synchronizer.core.connection == .refused else { return }
            guard !world.cloud.knows(credentials) else {
                // The server is one from before that: its person only tries again.
                kill()
                return start()
            }
            // What it once was is dead, and stands in the list under its name.
            if let abandoned, !world.machines.contains(where: { $0.credentials.token == abandoned.token }) {
                _ = world.cloud.revoke(abandoned)
            }
            abandoned = nil
            guard let called = try? world.cloud.join(fresh) else { return }
            fresh.name = called
            kill()
            credentials = fresh
            start()
        }
    }

    // MARK: Time

    /// By its own clock.
    var timeOfDay: Timestamp {
        let parts = clockOffset.components
        return Timestamp(nanoseconds: world.timeOfDay.nanoseconds + parts.seconds * 1_000_000_000)
    }

    func setClock(ahead offset: Duration) {
        world.count(.clockJumps)
        world.note("\(name)'s clock is set")
        clockOffset = offset
    }

    // MARK: Programs that are about to act

    private struct Intent {
        let number: Int
        /// When so many more places have been looked at.
        var looks: Int
        let act: (SimMachine) -> Void
    }

    private var intents: [Intent] = []
    private var intentCount = 0

    /// What programs do as soon as the mount is there: while the engine looks what has changed, or soon after.
    private var beginnings: [(looks: Int, act: (SimMachine) -> Void)] = []

    func whenStarted(looks: Int, _ act: @escaping (SimMachine) -> Void) {
        if beginnings.count < 4 { beginnings.append((looks, act)) }
    }

    /// While a pass or a scan looks, or else within that time.
    func soon(_ time: ClosedRange<Int>, looks: Int, _ act: @escaping (SimMachine) -> Void) {
        intentCount += 1
        let intent = Intent(number: intentCount, looks: looks, act: act)
        intents.append(intent)
        world.later(time) { [self] in
            guard let index = intents.firstIndex(where: { $0.number == intent.number }) else { return }
            intents.remove(at: index).act(self)
        }
    }

    /// A pass or a scan is about to look at a place.
    func actMeanwhile() {
        guard !intents.isEmpty else { return }
        for index in intents.indices { intents[index].looks -= 1 }
        while let index = intents.firstIndex(where: { $0.looks < 0 }) {
            world.count(.races)
            intents.remove(at: index).act(self)
        }
    }

    // MARK: What the driver tells

    /// A rename that has been done, and of which the driver is about to tell.
    private var untold: LocalChange?
    var isMoving: Bool { untold != nil }

    func tell(_ change: LocalChange) {
        tellOfLastMove()
        device?.report(change)
    }

    func tellOfMove(_ change: LocalChange) {
        tellOfLastMove()
        guard world.settings.has(.lateWords), device != nil else { return tell(change) }
        world.count(.lateWords)
        untold = change
        soon(20...800, looks: world.random.below(4)) { $0.tellOfLastMove() }
    }

    private func tellOfLastMove() {
        guard let change = untold else { return }
        untold = nil
        device?.report(change)
    }

    // MARK: Life

    func start() {
        guard device == nil else {
            startsAgain = device?.synchronizer.isStopping ?? false
            return
        }
        world.note("\(name) starts")
        let device = SimDevice(machine: self)
        self.device = device
        devices.append(device)
        device.open()
        var acts = beginnings
        beginnings = []
        // The mount is there before the engine looks at anything.
        if !acts.isEmpty, world.random.happens(30) {
            acts.removeFirst().act(self)
            if world.random.happens(50) { device.drain() }
        }
        for (looks, act) in acts { soon(1_000...20_000, looks: looks, act) }
        device.start()
    }

    /// As by `kill -9`: what was in memory is gone.
    func kill() {
        guard let device else { return }
        startsAgain = false
        world.note("\(name) is killed")
        device.isDead = true
        untold = nil
        claims.endAll()
        device.synchronizer.isStopping = true
        self.device = nil
        // Its programs' descriptors are dead with the mount; and nobody publishes what was staged.
        for number in disk.inodes.keys.sorted() {
            disk[number]?.writers = 0
            disk[number]?.isDirty = false
        }
        disk.dropStaged()
    }

    /// As somebody who asks it to end.
    func stop() {
        guard let device, !device.synchronizer.isStopping else { return }
        world.note("\(name) is to stop")
        device.synchronizer.isStopping = true
        stopWhenIdle(device)
    }

    private func stopWhenIdle(_ device: SimDevice) {
        guard !device.synchronizer.isRunningPass else {
            return device.later(100...2_000) { [self] in stopWhenIdle($0) }
        }
        let isInUse = disk.inodes.values.contains { $0.writers > 0 || $0.isDirty }
        let isClean = device.hasNothingToSend && !isInUse
        let startsAgain = startsAgain
        kill()
        if isClean, !isDiskFull {
            world.count(.cleanStops)
            makeDiskDurable()
            database.wasStoppedCleanly = true
            makeDatabaseDurable()
        }
        if startsAgain { start() }
    }

    /// Nothing of its world happens any more.
    func end() {
        device = nil
        for device in devices { device.end() }
        devices = []
    }

    // MARK: Disasters

    /// All that was written until now stays, even without power: a journal keeps the order.
    func makeDiskDurable() { durable.disk = disk }

    /// Transactions are durable with the next one at the latest.
    func makeDatabaseDurable() { durable.database = database }

    func losePower(isTorn: Bool) {
        guard device != nil else { return }
        kill()
        world.count(isTorn ? .writesTorn : .powerLosses)
        world.note("\(name) loses its power")
        // The database may have come further than the disk was asked to, never less far.
        let former = world.random.happens(50) ? durable.database : database
        // What is appended to the log of deletions is written some time.
        var log = database.deletions
        if world.random.happens(50) { log.formIntersection(durable.database.deletions) }
        var left = durable.disk
        if isTorn {
            // It writes in the order of its journal: names up to some moment, and of files that are written in place what it got to.
            if world.random.happens(50) { left = disk } else { left.tear(toward: disk, &world.random) }
        }
        goBack(to: left, former)
        database.deletions = log
    }

    func backUp() {
        guard device != nil else { return }
        backup = (disk, database, credentials)
    }

    /// The files come back as new inodes, and the database as it was.
    func restore() {
        guard let backup else { return }
        self.backup = nil
        kill()
        world.count(.backupsRestored)
        world.note("\(name)'s backup is restored")
        goBack(to: backup.disk, backup.database)
        if credentials.token != backup.credentials.token { abandoned = credentials }
        credentials = backup.credentials
        disk.renumber()
        durable = (disk, database)
    }

    func backUpTree() {
        if device != nil { treeBackup = disk }
    }

    /// The folder as it was, and all else as it is.
    func setTreeBack() {
        guard device == nil, database.wasStoppedCleanly, let backup = treeBackup else { return }
        treeBackup = nil
        world.count(.treesSetBack)
        world.note("\(name)'s folder is set back")
        goBack(to: backup)
        if world.random.happens(50) { disk.renumber() }
        durable = (disk, database)
    }

    /// Everything of another one, copied while that was running: by blocks, or file by file.
    func becomeClone(of other: SimMachine) {
        kill()
        // Its person removes what it was.
        if credentials.token != other.credentials.token { _ = world.cloud.revoke(credentials) }
        world.count(.disksCloned)
        world.note("\(name) becomes a clone of \(other.name)")
        goBack(to: other.disk, other.database)
        credentials = other.credentials
        if world.random.happens(50) { disk.renumber() }
        durable = (disk, database)
    }

    /// What only this disk had goes with it.
    private func goBack(to former: SimDisk, _ database: SimDatabase) {
        goBack(to: former)
        self.database = database
        for item in database.sending.keys { self.database.sending[item]?.isDoubtful = true }
        for item in database.sentLinks.keys { self.database.sentLinks[item]?.isDoubtful = true }
    }

    private func goBack(to former: SimDisk) {
        let left = former.lastingTokens
        let sent = (try? world.cloud.kept()) ?? []
        world.ledger.destroy(disk.tokens.filter { !left.contains($0) && !sent.contains($0) }.sorted())
        if world.settings.has(.links) {
            let others = world.machines.filter { $0 !== self }.flatMap { $0.disk.targets }
            let known = former.targets.union((try? world.cloud.targets()) ?? []).union(others)
            for target in disk.targets.subtracting(known) { world.ledger.destroy(target: target) }
        }
        disk.goBack(to: former)
        for number in disk.inodes.keys.sorted() {
            disk[number]?.writers = 0
            disk[number]?.isDirty = false
        }
        disk.dropStaged()
    }

    func setDeaf(_ isDeaf: Bool) {
        guard self.isDeaf != isDeaf else { return }
        self.isDeaf = isDeaf
        if isDeaf { world.count(.networkDeaf) }
        world.note("\(name) hears \(isDeaf ? "nothing" : "others again")")
    }

    func fillDisk() {
        guard !isDiskFull else { return }
        isDiskFull = true
        world.count(.disksFull)
        world.note("\(name)'s disk is full")
    }

    func freeDisk() {
        guard isDiskFull else { return }
        isDiskFull = false
        world.note("\(name)'s disk has room again")
    }

    func setDiskFailing(_ isFailing: Bool) {
        guard isDiskFailing != isFailing else { return }
        isDiskFailing = isFailing
        world.note("\(name)'s disk \(isFailing ? "begins to fail" : "is good again")")
    }

    /// Now and then, while the disk is bad.
    func diskFails() -> Bool {
        guard isDiskFailing, world.random.happens(20) else { return false }
        world.count(.diskFailures)
        return true
    }

    func setReachable(_ isReachable: Bool) {
        guard self.isReachable != isReachable else { return }
        self.isReachable = isReachable
        world.note("\(name) \(isReachable ? "has" : "has no") network")
        if !isReachable { device?.loseConnection() }
    }
}
