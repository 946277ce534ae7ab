import UbiquityModel

extension ClaimTable {
    /// What an entry waits for.
    enum Blocker: Hashable {
        case held(Entry, Part)
        case waiting(Entry, Part)
        case writer(ProgramWriter)
        case exchange(ClaimArea)
    }

    /// - Parameter queue: those who came earlier and still wait, in order.
    func blockers(of entry: Entry, behind queue: [Entry], _ writers: [ProgramWriter], now: Duration) -> [Blocker] {
        var result = [Blocker]()
        let own = held.filter { entry.family.contains($0) }
        for other in held where !entry.family.contains(other) {
            if let part = entry.conflict(with: other) { result.append(.held(other, part)) }
        }
        result += blockers(of: entry, in: queue, own: own)
        if entry.isExplicit {
            let recent = admitted.filter { $0.until > now && !writers.contains($0.writer) }.map(\.writer)
            result += (writers + recent).filter { blocks($0, entry, own: own) }.map { .writer($0) }
        }
        let areas = exchanges.sorted { $0.key < $1.key }.map(\.value)
        result += areas.filter { area in entry.parts.contains { $0.area.overlaps(area) } }.map { .exchange($0) }
        return result
    }

    /// Those who came earlier, without those who wait for the entry's own family: these cannot go on before it does.
    /// - Parameter own: the claims of that family.
    private func blockers(of entry: Entry, in queue: [Entry], own: [Entry]) -> [Blocker] {
        var inFront = own
        var result = [Blocker]()
        for other in queue where !entry.family.contains(other) {
            if inFront.contains(where: { !other.family.contains($0) && other.conflict(with: $0) != nil }) {
                inFront.append(other)
            } else if entry.isExplicit || other.isExplicit, let part = entry.conflict(with: other) {
                // Between plain opens the rules of POSIX hold.
                result.append(.waiting(other, part))
            }
        }
        return result
    }

    /// A file that is open for writing is a write in progress, unless it is open in the entry's own process or within its family.
    private func blocks(_ writer: ProgramWriter, _ entry: Entry, own: [Entry]) -> Bool {
        entry.parts.contains { $0.area.overlaps(writer.area) } && writer.program.pid != entry.pid
            && !own.contains { writer.program.within.contains($0.id) }
    }

    /// For people: who stands in the way of one that waits.
    func holders(blocking entry: Entry, in situation: ClaimSituation) -> [ClaimHolder] {
        let queue = Array(waiting.prefix { $0.id < entry.id })
        return blockers(of: entry, behind: queue, situation.writers, now: situation.now).map(\.holder)
    }
}

extension ClaimTable.Blocker {
    var isExchange: Bool {
        switch self {
        case .exchange: true
        case .held, .waiting, .writer: false
        }
    }

    var holder: ClaimHolder {
        switch self {
        case .held(let entry, let part): entry.holder(part, isHeld: true)
        case .waiting(let entry, let part): entry.holder(part, isHeld: false)
        case .writer(let writer):
            ClaimHolder(
                role: .writes,
                program: writer.program.name,
                pid: writer.program.pid,
                access: .write,
                target: writer.area.target
            )
        case .exchange(let area):
            ClaimHolder(role: .synchronizes, program: "ubiquity", pid: 0, access: .write, target: area.target)
        }
    }
}
