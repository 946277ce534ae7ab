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
    /// Its network is up.
    var isReachable = true
    /// Of the program that acts last: what one does is the same whatever others do.
    var chance = SimRandom(seed: 0)

    init(number: Int, world: SimWorld) {
        self.number = number
        self.world = world
        name = "device \(number)"
        disk = SimDisk(at: world.timeOfDay)
    }

    func start() {
        guard device == nil else { return }
        world.note("\(name) starts")
        let device = SimDevice(machine: self)
        self.device = device
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

    func setReachable(_ isReachable: Bool) {
        guard self.isReachable != isReachable else { return }
        self.isReachable = isReachable
        world.note("\(name) \(isReachable ? "has" : "has no") network")
        if !isReachable { device?.loseConnection() }
    }
}
