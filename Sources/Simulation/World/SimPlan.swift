/// When programs act, devices die and networks fail. Each step is the same whether others are taken or not.
struct SimPlan {
    struct Step {
        enum Kind {
            case act(SimRandom)
            case kill
            case start
            case cut
            case mend
        }

        var at: Duration
        var machine: Int
        var kind: Kind

        func take(in world: SimWorld) {
            let machine = world.machines[machine]
            switch kind {
            case .act(let random): machine.act(random)
            case .kill:
                if machine.device != nil { world.count(.kills) }
                machine.kill()
            case .start: machine.start()
            case .cut:
                world.count(.networkCuts)
                machine.setReachable(false)
            case .mend: machine.setReachable(true)
            }
        }
    }

    private(set) var steps: [Step] = []

    init(_ random: inout SimRandom, machines: Int, settings: SimSettings) {
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
    }

    private static func count(of fault: SimFault, drawn: Int, _ settings: SimSettings) -> Int {
        guard let faults = settings.faults else { return drawn }
        return faults.contains(fault) ? max(drawn, 1) : 0
    }

    private mutating func add(_ kind: Step.Kind, _ end: Step.Kind, _ machine: Int, _ at: Duration, _ until: Duration) {
        steps.append(Step(at: at, machine: machine, kind: kind))
        steps.append(Step(at: until, machine: machine, kind: end))
    }
}
