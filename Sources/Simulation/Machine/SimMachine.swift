import EngineCore
import Logging
import UbiquityModel

/// A device of a simulated world: what its disk holds, the process that serves it if one runs, and what programs do to it.
final class SimMachine {
    let number: Int
    let name: String
    let world: SimWorld
    var disk: SimDisk
    var database = SimDatabase()
    /// `nil` while no service runs.
    private(set) var device: SimDevice?
    private var devices: [SimDevice] = []
    /// What is on the disk, and in the database, whatever happens.
    private var durable: (disk: SimDisk, database: SimDatabase)
    private var backup: (disk: SimDisk, database: SimDatabase)?
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

    init(number: Int, world: SimWorld) {
        self.number = number
        self.world = world
        name = "device \(number)"
        disk = SimDisk(at: world.timeOfDay)
        durable = (disk, database)
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

    // MARK: Life

    func start() {
        guard device == nil else { return }
        world.note("\(name) starts")
        let device = SimDevice(machine: self)
        self.device = device
        devices.append(device)
        device.start()
    }

    /// As by `kill -9`: what was in memory is gone.
    func kill() {
        guard let device else { return }
        world.note("\(name) is killed")
        device.isDead = true
        device.synchronizer.isStopping = true
        self.device = nil
        // Its programs' descriptors are dead with the mount; and nobody publishes what was staged.
        for number in disk.inodes.keys.sorted() {
            disk[number]?.writers = 0
            disk[number]?.isDirty = false
        }
        for number in disk.staging.values { disk[number] = nil }
        disk.staging = [:]
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

    func losePower() {
        guard device != nil else { return }
        kill()
        world.count(.powerLosses)
        world.note("\(name) loses its power")
        // The database may have come further than the disk was asked to, never less far.
        let former = world.random.happens(50) ? durable.database : database
        // What is appended to the log of deletions is written some time.
        var log = database.deletions
        if world.random.happens(50) { log.formIntersection(durable.database.deletions) }
        goBack(to: durable.disk, former)
        database.deletions = log
    }

    func backUp() {
        guard device != nil else { return }
        backup = (disk, database)
    }

    /// The files come back as new inodes, and the database as it was.
    func restore() {
        guard let backup else { return }
        self.backup = nil
        kill()
        world.count(.backupsRestored)
        world.note("\(name)'s backup is restored")
        goBack(to: backup.disk, backup.database)
        disk.renumber()
        durable = (disk, database)
    }

    /// What only this disk had goes with it.
    private func goBack(to former: SimDisk, _ database: SimDatabase) {
        let left = former.tokens
        world.ledger.destroy(disk.tokens.filter { !left.contains($0) }.sorted())
        disk.goBack(to: former)
        for number in disk.inodes.keys.sorted() {
            disk[number]?.writers = 0
            disk[number]?.isDirty = false
        }
        for number in disk.staging.values { disk[number] = nil }
        disk.staging = [:]
        self.database = database
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
