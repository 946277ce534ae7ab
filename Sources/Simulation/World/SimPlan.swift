/// When programs act, devices die and networks fail. Each step is the same whether others are taken or not.
struct SimPlan {
    struct Step {
        enum Kind {
            case act(SimRandom)
            /// A program writes what is to be ignored.
            case rule(SimRandom)
            /// A program does something to a folder that is one document.
            case package(SimRandom)
            case kill
            case stop
            case start
            case cut
            case mend
            /// Torn: while its disk writes.
            case losePower(isTorn: Bool)
            case backUp
            case restore
            case backUpTree
            case setTreeBack
            /// By so many seconds.
            case setClock(Int)
            case backUpServer
            case restoreServer
            case fillDisk
            case freeDisk
            case spoilDisk
            case replaceDisk
            case useUpQuota
            case raiseQuota
            case deafen
            case hear
            case revoke
            /// Of the machine with that number.
            case clone(Int)
            case collectChunks
        }

        var at: Duration
        var machine: Int
        var kind: Kind

        func take(in world: SimWorld) {
            let machine = world.machines[machine]
            switch kind {
            case .act(let random):
                if world.settings.has(.alone) { world.count(.alone) }
                machine.take(random)
            case .rule(let random): machine.rule(random)
            case .package(let random): machine.actOnPackage(random)
            case .kill:
                if machine.device != nil { world.count(.kills) }
                machine.kill()
            case .stop: machine.stop()
            case .start: machine.start()
            case .cut:
                world.count(.networkCuts)
                machine.setReachable(false)
            case .mend: machine.setReachable(true)
            case .losePower(let isTorn): machine.losePower(isTorn: isTorn)
            case .backUp: machine.backUp()
            case .restore: machine.restore()
            case .backUpTree: machine.backUpTree()
            case .setTreeBack: machine.setTreeBack()
            case .setClock(let seconds): machine.setClock(ahead: .seconds(seconds))
            case .backUpServer: world.backUpCloud()
            case .restoreServer: world.restoreCloud()
            case .fillDisk: machine.fillDisk()
            case .freeDisk: machine.freeDisk()
            case .spoilDisk: machine.setDiskFailing(true)
            case .replaceDisk: machine.setDiskFailing(false)
            case .useUpQuota: world.setQuotaUsed(true)
            case .raiseQuota: world.setQuotaUsed(false)
            case .deafen: machine.setDeaf(true)
            case .hear: machine.setDeaf(false)
            case .revoke: world.revoke(machine)
            case .clone(let original): machine.becomeClone(of: world.machines[original])
            case .collectChunks: world.collectChunks()
            }
        }
    }

    private(set) var steps: [Step] = []

    /// - Parameter seed: the world's.
    init(_ random: inout SimRandom, seed: UInt64, machines: Int, settings: SimSettings) {
        let drawn = 10 + random.below(50)
        for _ in 0..<(settings.steps ?? drawn) {
            // Often close together.
            let moment = Duration.milliseconds(random.below(random.happens(50) ? 2_000 : 18_000))
            steps.append(Step(at: moment, machine: random.below(machines), kind: .act(random.split())))
        }
        for _ in 0..<Self.count(of: .kills, drawn: random.below(4), settings) {
            let moment = Duration.microseconds(500_000 + random.below(17_000_000))
            add(.kill, .start, random.below(machines), moment, moment + .milliseconds(1 + random.below(3_000)))
        }
        for _ in 0..<Self.count(of: .cuts, drawn: random.below(4), settings) {
            let moment = Duration.microseconds(100_000 + random.below(15_000_000))
            add(.cut, .mend, random.below(machines), moment, moment + .milliseconds(1 + random.below(4_000)))
        }
        addDisasters(SimRandom(seed: seed ^ 0xD15A_57E2), machines, settings)
        addRules(SimRandom(seed: seed ^ 0x1640_2E00), machines, settings)
        addPackages(SimRandom(seed: seed ^ 0x09AC_4A6E), machines, settings)
        addStops(SimRandom(seed: seed ^ 0x5709_5E7B), machines, settings)
        if settings.has(.alone) { leaveAlone(SimRandom(seed: seed ^ 0xA105_E000)) }
    }

    /// From when on the second device is the only one on which programs act.
    static let secondAuthor = Duration.seconds(8)

    /// Each at its time, and nothing else happens.
    private mutating func leaveAlone(_ random: SimRandom) {
        var random = random
        let acts = steps.filter { if case .act = $0.kind { true } else { false } }
        var moment = Self.secondAuthor
        steps = acts.enumerated().map { number, act in
            var act = act
            act.machine = number < acts.count / 3 ? 0 : 1
            if act.machine == 0 {
                act.at = .microseconds(random.below(2_000_000))
            } else {
                // As a script does one thing after the other, or as a person does.
                moment += .microseconds(random.happens(80) ? 100 + random.below(5_000) : random.below(500_000))
                act.at = moment
            }
            return act
        }
    }

    /// In a random order of its own: what it decides is the same whether something else was asked for or drawn.
    private static func lot(_ random: SimRandom, _ percent: Int) -> Bool {
        var copy = random
        var lot = copy.split()
        return lot.happens(percent)
    }

    private mutating func addPackages(_ random: SimRandom, _ machines: Int, _ settings: SimSettings) {
        var random = random
        // The settings say in which worlds (`SimSettings.drawing`).
        for _ in 0..<(Self.count(of: .packages, drawn: 0, settings) * (4 + random.below(24))) {
            let moment = Duration.milliseconds(random.below(random.happens(30) ? 2_000 : 18_000))
            steps.append(Step(at: moment, machine: random.below(machines), kind: .package(random.split())))
        }
    }

    private mutating func addStops(_ random: SimRandom, _ machines: Int, _ settings: SimSettings) {
        var random = random
        for _ in 0..<Self.count(of: .stops, drawn: random.happens(40) ? 1 + random.below(3) : 0, settings) {
            let moment = Duration.microseconds(500_000 + random.below(17_000_000))
            add(.stop, .start, random.below(machines), moment, moment + .milliseconds(1 + random.below(3_000)))
        }
        for _ in 0..<Self.count(of: .treesSetBack, drawn: random.happens(15) ? 1 : 0, settings) {
            let machine = random.below(machines)
            let backup = Duration.microseconds(500_000 + random.below(8_000_000))
            let stop = backup + .microseconds(500_000 + random.below(9_000_000))
            steps.append(Step(at: backup, machine: machine, kind: .backUpTree))
            add(.stop, .setTreeBack, machine, stop, stop + .milliseconds(100 + random.below(500)))
            steps.append(Step(at: stop + .milliseconds(700 + random.below(500)), machine: machine, kind: .start))
        }
        if random.happens(15), settings.faults == nil, !settings.moreFaults.contains(.failingDisks) {
            let moment = Duration.microseconds(100_000 + random.below(15_000_000))
            let end = moment + .milliseconds(1 + random.below(4_000))
            add(.spoilDisk, .replaceDisk, random.below(machines), moment, end)
        }
    }

    /// In a random order of their own as well, which is the same whether they were asked for or drawn.
    private mutating func addRules(_ random: SimRandom, _ machines: Int, _ settings: SimSettings) {
        var random = random
        let drawn = Self.lot(random, 20) ? 1 : 0
        for _ in 0..<(Self.count(of: .rules, drawn: drawn, settings) * (1 + random.below(8))) {
            let moment = Duration.milliseconds(random.below(random.happens(50) ? 2_000 : 18_000))
            steps.append(Step(at: moment, machine: random.below(machines), kind: .rule(random.split())))
        }
    }

    /// In a random order of their own: what was planned without them stays as it is.
    private mutating func addDisasters(_ random: SimRandom, _ machines: Int, _ settings: SimSettings) {
        var random = random
        for _ in 0..<Self.count(of: .powerLosses, drawn: random.below(3), settings) {
            let moment = Duration.microseconds(500_000 + random.below(17_000_000))
            add(
                .losePower(isTorn: false),
                .start,
                random.below(machines),
                moment,
                moment + .milliseconds(1 + random.below(3_000))
            )
        }
        for _ in 0..<Self.count(of: .backups, drawn: random.happens(20) ? 1 : 0, settings) {
            let machine = random.below(machines)
            let backup = Duration.microseconds(500_000 + random.below(8_000_000))
            let moment = backup + .microseconds(500_000 + random.below(9_000_000))
            steps.append(Step(at: backup, machine: machine, kind: .backUp))
            add(.restore, .start, machine, moment, moment + .milliseconds(1 + random.below(1_000)))
        }
        for _ in 0..<Self.count(of: .clocks, drawn: random.below(3), settings) {
            let moment = Duration.microseconds(100_000 + random.below(18_000_000))
            let days = random.below(5) - 2
            let kind = Step.Kind.setClock(days * 86_400 + random.below(200) - 100)
            steps.append(Step(at: moment, machine: random.below(machines), kind: kind))
        }
        // The settings say in which worlds (`SimSettings.drawing`).
        for _ in 0..<Self.count(of: .serverBackups, drawn: 0, settings) {
            let backup = Duration.microseconds(500_000 + random.below(10_000_000))
            let moment = backup + .microseconds(200_000 + random.below(9_000_000))
            steps.append(Step(at: backup, machine: 0, kind: .backUpServer))
            steps.append(Step(at: moment, machine: 0, kind: .restoreServer))
        }
        addLacks(&random, machines, settings)
    }

    private mutating func addLacks(_ random: inout SimRandom, _ machines: Int, _ settings: SimSettings) {
        let lacks: [(SimFault, Step.Kind, Step.Kind)] = [
            (.fullDisks, .fillDisk, .freeDisk), (.quotas, .useUpQuota, .raiseQuota), (.oneWay, .deafen, .hear),
            (.failingDisks, .spoilDisk, .replaceDisk),
        ]
        for (fault, begin, end) in lacks {
            // Where failing disks are only drawn, they come last: a story's steps keep their numbers.
            let drawn = random.happens(15) && fault != .failingDisks ? 1 : 0
            for _ in 0..<Self.count(of: fault, drawn: drawn, settings) {
                let moment = Duration.microseconds(100_000 + random.below(15_000_000))
                add(begin, end, random.below(machines), moment, moment + .milliseconds(1 + random.below(4_000)))
            }
        }
        addMore(&random, machines, settings)
    }

    private mutating func addMore(_ random: inout SimRandom, _ machines: Int, _ settings: SimSettings) {
        for _ in 0..<Self.count(of: .revocations, drawn: random.happens(15) ? 1 : 0, settings) {
            let moment = Duration.microseconds(100_000 + random.below(17_000_000))
            steps.append(Step(at: moment, machine: random.below(machines), kind: .revoke))
        }
        for _ in 0..<Self.count(of: .tornWrites, drawn: random.happens(20) ? 1 : 0, settings) {
            let moment = Duration.microseconds(500_000 + random.below(17_000_000))
            let end = moment + .milliseconds(1 + random.below(3_000))
            add(.losePower(isTorn: true), .start, random.below(machines), moment, end)
        }
        for _ in 0..<Self.count(of: .clones, drawn: random.happens(10) ? 1 : 0, settings) {
            let machine = random.below(machines)
            let original = (machine + 1 + random.below(machines - 1)) % machines
            let moment = Duration.microseconds(500_000 + random.below(17_000_000))
            add(.clone(original), .start, machine, moment, moment + .milliseconds(1 + random.below(1_000)))
        }
        for _ in 0..<Self.count(of: .collections, drawn: random.happens(20) ? 20 + random.below(60) : 0, settings) {
            let moment = Duration.microseconds(100_000 + random.below(18_000_000))
            steps.append(Step(at: moment, machine: 0, kind: .collectChunks))
        }
    }

    private static func count(of fault: SimFault, drawn: Int, _ settings: SimSettings) -> Int {
        if settings.moreFaults.contains(fault) { return max(drawn, 1) }
        guard let faults = settings.faults else { return drawn }
        return faults.contains(fault) ? max(drawn, 1) : 0
    }

    private mutating func add(_ kind: Step.Kind, _ end: Step.Kind, _ machine: Int, _ at: Duration, _ until: Duration) {
        steps.append(Step(at: at, machine: machine, kind: kind))
        steps.append(Step(at: until, machine: machine, kind: end))
    }
}
