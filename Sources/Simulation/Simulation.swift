import EngineCore
import UbiquityModel

/// One schedule: devices that share a container, programs on them, and what goes wrong. Everything is decided by the seed, and nothing
/// by the machine or the moment: the same seed gives the same trace.
///
/// Sources: architecture section 9; Dropbox's Nucleus and FoundationDB, of which the design documents tell.
package struct Simulation {
    package struct Outcome {
        package var seed: UInt64
        /// Why it is wrong; `nil` for one that is right.
        package var failure: String?
        /// The same for the same seed.
        package var trace: UInt64
        package var counts: [SimCounter: Int]
        package var story: [String]
        /// From the end of all trouble until everything was equal.
        package var settling: Duration
    }

    /// Fewer steps that are wrong as well, for somebody to read.
    /// - Returns: their numbers.
    package static func shrink(seed: UInt64, settings: SimSettings = SimSettings()) -> [Int] {
        guard let world = try? SimWorld(seed: seed, settings: settings, keepsStory: false) else { return [] }
        var left = Array(plan(of: world).indices)
        world.end()
        var size = left.count / 2
        while size > 0 {
            var start = 0
            while start < left.count {
                var fewer = left
                fewer.removeSubrange(start..<min(start + size, left.count))
                if run(seed: seed, settings: settings, only: fewer).failure != nil {
                    left = fewer
                } else {
                    start += size
                }
            }
            size /= 2
        }
        return left
    }

    private static let trouble = Duration.seconds(20)
    /// What fails while there is trouble is tried again within half a minute after; nothing else waits for longer.
    private static let patience = Duration.seconds(150)
    /// After the trouble; then its person gives up a device that was lost.
    private static let mourning = Duration.seconds(60)

    /// - Parameters:
    ///   - left: Of the schedule's steps, those that are taken, by number; `nil`: all.
    ///   - keepsStory: in words, what happened.
    package static func run(
        seed: UInt64,
        settings: SimSettings = SimSettings(),
        only left: [Int]? = nil,
        keepsStory: Bool = false
    ) -> Outcome {
        let world: SimWorld
        do { world = try SimWorld(seed: seed, settings: settings, keepsStory: keepsStory) } catch {
            return Outcome(seed: seed, failure: "\(error)", trace: 0, counts: [:], story: [], settling: .zero)
        }
        let settling = play(world, left)
        world.end()
        return Outcome(
            seed: seed,
            failure: world.failure,
            trace: world.trace,
            counts: world.counts,
            story: world.story,
            settling: settling
        )
    }

    private static func plan(of world: SimWorld) -> [SimPlan.Step] {
        SimPlan(&world.random, seed: world.seed, machines: world.machines.count, settings: world.settings).steps
    }

    private static func play(_ world: SimWorld, _ left: [Int]?) -> Duration {
        for machine in world.machines { machine.start() }
        let steps = plan(of: world)
        for number in left ?? Array(steps.indices) where steps.indices.contains(number) {
            let step = steps[number]
            world.at(step.at) { step.take(in: world) }
        }
        world.run(until: trouble)
        world.isTroubled = false
        world.note("the trouble ends")
        for machine in world.machines {
            machine.start()
            machine.setReachable(true)
            machine.setDeaf(false)
            machine.freeDisk()
            machine.setDiskFailing(false)
        }
        world.setQuotaUsed(false)
        // What is open is closed within seconds; what waits, waits for minutes at most.
        let end = world.now + patience
        let judge = SimJudge(world: world)
        repeat {
            world.run(until: world.now + .seconds(2))
            if world.now > trouble + mourning { world.removeLostDevices() }
        } while world.failure == nil && world.now < end && !judge.isSettled
        // As `find` on each: what comes after that, nobody has asked for yet.
        while world.settings.has(.population), world.failure == nil, world.now < end {
            let count = world.counts[.populations]
            for machine in world.machines { machine.device?.populateTree(SimDisk.key(SimDisk.root)) }
            if world.counts[.populations] == count { break }
            repeat {
                world.run(until: world.now + .seconds(2))
            } while world.failure == nil && world.now < end && !judge.isSettled
        }
        let settling = world.now - trouble
        judge.judge()
        for machine in world.machines { machine.kill() }
        // Tasks that wait end, so that nothing of this world stays behind.
        world.run(until: world.now + .seconds(3600))
        return settling
    }
}
