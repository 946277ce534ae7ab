package import UbiquityModel

/// Who holds what and who waits for it: the rules of semantics section 6, without clock, threads or sockets.
///
/// Each event is a function that returns what the broker is to do. Two kinds take part: *explicit claims*, which are held from
/// their grant to their release, and *plain opens* of ordinary programs, which only wait.
/// 1. A request is granted, refused, or waits at the end of the queue; all its items or none.
/// 2. After each event the queue is looked through in order of arrival. What waits is granted when nothing that is held, and
///    nothing that came earlier and still waits, conflicts with it.
/// 3. An explicit claim also waits for programs that have a file of its open for writing, and for an exchange of the engine.
///    A plain open waits only for explicit claims, and when it comes only for those that are held: programs cannot be asked to
///    close what they have open, so that queueing them behind a claim that waits for them would stop both.
/// 4. Nobody waits for its own party, its own purpose, or a claim that it is within (its *family*), nor behind one that waits
///    for its family.
/// 5. A wait that closes a cycle is refused at once, to the latest.
package struct ClaimTable: Sendable {
    /// More than these do not wait at a time.
    package static let mostWaiting = 10_000
    /// More explicit claims than these are not held and waited for at a time. Each keeps a connection to the service, of which there are
    /// 512 (`ControlListener`): what a holder's own program asks of the service still has to come through, or nobody would ever go on.
    package static let mostClaims = 384
    /// An open that was admitted counts as a writer for so long: until then the driver has surely counted it.
    static let admissionTime: Duration = .seconds(1)

    /// Both in order of their ids.
    var held: [Entry] = []
    var waiting: [Entry] = []
    /// Opens for writing that have gone on a moment ago.
    var admitted: [(writer: ProgramWriter, until: Duration)] = []
    /// How many of them there are when it is looked for those that no longer count: while nobody waits nothing else does that.
    private var admittedToTrim = ClaimTable.leastToTrim
    private static let leastToTrim = 256
    /// Exchanges of the engine.
    var exchanges: [EngineExchange: ClaimArea] = [:]
    /// What the engine would like to do, in the order in which it asked.
    var engineInterests: [EngineInterest] = []
    private var nextNumber: UInt64

    /// - Parameter firstNumber: of the claims; something that an earlier service has not used, so that its claims are not
    ///   mistaken for this one's.
    package init(firstNumber: UInt64 = 1) { nextNumber = firstNumber }

    /// Whether anybody holds a claim or waits: while nobody does, nothing needs to be asked.
    package var hasClaims: Bool { !held.isEmpty || !waiting.isEmpty }

    /// Whether a claim or an open waits.
    package var hasWaiting: Bool { !waiting.isEmpty }

    /// Asks for a claim. The answer comes as an action, now or after another event.
    package mutating func request(
        _ request: ClaimRequest,
        in situation: ClaimSituation
    ) -> (claim: ClaimID, actions: [ClaimAction]) {
        let entry = Entry(
            id: newID(),
            origin: .claim(request.party, purpose: request.purpose),
            program: request.program,
            pid: request.pid,
            parts: request.items.map { Part(access: $0.access, target: $0.target, area: $0.area) },
            family: family(party: request.party, purpose: request.purpose, within: request.within.map { [$0] } ?? []),
            deadline: request.timeout.map { situation.now + $0 }
        )
        guard held.count + waiting.count(where: \.isExplicit) < Self.mostClaims else {
            return (entry.id, [.refuse(entry.id, .tooManyWaiting)])
        }
        guard blockers(of: entry, behind: waiting, situation.writers, now: situation.now).isEmpty else {
            return (entry.id, wait(entry, in: situation))
        }
        return (entry.id, grant(entry, now: situation.now))
    }

    /// A program opens a file. If it does not go on at once, it waits until it is admitted or refused.
    /// - Parameters:
    ///   - mayWait: false: it is refused where it would wait for others. The engine's exchange it waits for all the same: that takes a
    ///     moment, and causes no errors.
    ///   - timeout: of the wait (`claim-limit`).
    package mutating func open(
        _ area: ClaimArea,
        forWriting: Bool,
        by program: ClaimProgram,
        mayWait: Bool = true,
        timeout: Duration,
        in situation: ClaimSituation
    ) -> (open: ClaimID, actions: [ClaimAction]) {
        let entry = Entry(
            id: newID(),
            origin: .open(within: program.within),
            program: program.name,
            pid: program.pid,
            parts: [Part(access: forWriting ? .write : .read, target: area.target, area: area)],
            family: family(party: nil, purpose: nil, within: program.within),
            deadline: situation.now + timeout
        )
        let blockers = blockers(of: entry, behind: [], situation.writers, now: situation.now)
        if !mayWait, blockers.contains(where: { !$0.isExchange }) {
            return (entry.id, [.refuse(entry.id, .wouldWait(blockers.map(\.holder)))])
        }
        guard blockers.isEmpty else { return (entry.id, wait(entry, in: situation)) }
        return (entry.id, grant(entry, now: situation.now))
    }

    /// Whether an open goes on at once, whoever it is of: as `open` decides for a program within no claim. If so, it is admitted; else
    /// nothing has happened. Every open asks this while there are claims.
    package mutating func admits(
        _ area: ClaimArea,
        forWriting: Bool,
        by program: ClaimProgram,
        now: Duration
    ) -> Bool {
        let part = Part(access: forWriting ? .write : .read, target: area.target, area: area)
        guard !held.contains(where: { $0.parts.contains { $0.conflicts(with: part) } }),
            !exchanges.values.contains(where: { $0.overlaps(area) })
        else { return false }
        if forWriting { admit(ProgramWriter(area: area, program: program), now: now) }
        return true
    }

    /// Ends a claim, or takes a waiting claim or open out of the queue (its caller was interrupted).
    package mutating func release(_ claim: ClaimID, in situation: ClaimSituation) -> [ClaimAction] {
        held.removeAll { $0.id == claim }
        waiting.removeAll { $0.id == claim }
        return reconsider(in: situation)
    }

    /// A connection is gone, and with it all that it held or waited for.
    package mutating func ended(_ party: PartyID, in situation: ClaimSituation) -> [ClaimAction] {
        held.removeAll { $0.party == party }
        waiting.removeAll { $0.party == party }
        return reconsider(in: situation)
    }

    /// An item, with all below it, has another path now. What concerns it goes with it.
    package mutating func moved(_ old: ClaimTarget, to new: ItemPath, in situation: ClaimSituation) -> [ClaimAction] {
        for index in held.indices { held[index].move(from: old, to: new) }
        for index in waiting.indices { waiting[index].move(from: old, to: new) }
        for index in admitted.indices { admitted[index].writer.area.move(from: old, to: new) }
        for exchange in exchanges.keys { exchanges[exchange]?.move(from: old, to: new) }
        for index in engineInterests.indices { engineInterests[index].area.move(from: old, to: new) }
        return reconsider(in: situation)
    }

    /// An item, with all below it, was deleted: who waits to read it gets that answer. Claims that are held stay, and so do
    /// waiting writers, which may make it anew; opens go on with the inode that they found.
    package mutating func deleted(_ target: ClaimTarget, in situation: ClaimSituation) -> [ClaimAction] {
        let area = ClaimArea(target, coversSubtree: true)
        var actions = [ClaimAction]()
        waiting.removeAll { entry in
            guard entry.isExplicit,
                let lost = entry.parts.first(where: { $0.access == .read && area.overlaps(ClaimArea($0.target)) })
            else { return false }
            actions.append(.refuse(entry.id, .deleted(lost.target)))
            return true
        }
        return actions + reconsider(in: situation)
    }

    /// Programs have opened or closed files.
    package mutating func writersChanged(in situation: ClaimSituation) -> [ClaimAction] { grantWaiting(in: situation) }

    /// To be called at `nextDeadline`.
    package mutating func timePassed(in situation: ClaimSituation) -> [ClaimAction] {
        // First whether something can be granted by now: then it need not be refused.
        var actions = reconsider(in: situation)
        let late = waiting.filter { $0.deadline.map { $0 <= situation.now } ?? false }
        guard !late.isEmpty else { return actions }
        actions += late.map { .refuse($0.id, .timedOut(holders(blocking: $0, in: situation))) }
        let ids = Set(late.map(\.id))
        waiting.removeAll { ids.contains($0.id) }
        return actions + reconsider(in: situation)
    }

    /// When `timePassed` is due, if nothing else happens before.
    package var nextDeadline: Duration? {
        let admissions = waiting.isEmpty ? [] : admitted.map(\.until)
        return (waiting.compactMap(\.deadline) + admissions).min()
    }

    /// Who stands in the way of a change by a program that cannot wait (create, unlink, rename, truncate): if anybody does, it is
    /// `EBUSY`. Only explicit claims of others do.
    /// - Parameter areas: what is changed. A create, unlink or rename also changes the lists of the folders concerned.
    package func holders(blockingChangeOf areas: [ClaimArea], by program: ClaimProgram) -> [ClaimHolder] {
        let family = family(party: nil, purpose: nil, within: program.within)
        return held.compactMap { entry in
            guard !family.contains(entry) else { return nil }
            return entry.parts.first { part in areas.contains { $0.overlaps(part.area) } }.map {
                entry.holder($0, isHeld: true)
            }
        }
    }

    /// Who holds and who waits, in order of arrival.
    package func listing(in situation: ClaimSituation) -> [ClaimListing] {
        held.map { $0.listing(.held) }
            + waiting.map { $0.listing(.waiting(for: holders(blocking: $0, in: situation))) }
    }

    mutating func newNumber() -> UInt64 {
        defer { nextNumber += 1 }
        return nextNumber
    }

    private mutating func newID() -> ClaimID { ClaimID(number: newNumber()) }

    private mutating func wait(_ entry: Entry, in situation: ClaimSituation) -> [ClaimAction] {
        if let deadline = entry.deadline, deadline <= situation.now {
            return [.refuse(entry.id, .timedOut(holders(blocking: entry, in: situation)))]
        }
        guard waiting.count < Self.mostWaiting else { return [.refuse(entry.id, .tooManyWaiting)] }
        waiting.append(entry)
        guard let cycle = cycle(through: entry, in: situation) else { return [] }
        waiting.removeLast()
        return [.refuse(entry.id, .deadlock(cycle))]
    }

    private mutating func grant(_ entry: Entry, now: Duration) -> [ClaimAction] {
        switch entry.origin {
        case .claim:
            held.insert(entry, at: held.firstIndex { $0.id > entry.id } ?? held.endIndex)
            return [.grant(entry.id, entry.parts.map(\.target))]
        case .open(let within):
            for part in entry.parts where part.access == .write {
                let program = ClaimProgram(pid: entry.pid, name: entry.program, within: within)
                admit(ProgramWriter(area: part.area, program: program), now: now)
            }
            return [.admit(entry.id)]
        }
    }

    private mutating func admit(_ writer: ProgramWriter, now: Duration) {
        if admitted.count >= admittedToTrim { trimAdmitted(now: now) }
        admitted.append((writer, now + Self.admissionTime))
    }

    private mutating func trimAdmitted(now: Duration) {
        admitted.removeAll { $0.until <= now }
        // Where many have come within a moment they are not looked through for each that follows.
        admittedToTrim = max(Self.leastToTrim, 2 * admitted.count)
    }

    /// Grants what can be granted by now, in order of arrival, then lets the engine try.
    mutating func reconsider(in situation: ClaimSituation) -> [ClaimAction] {
        grantWaiting(in: situation) + wakeEngine()
    }

    /// For the engine nothing becomes free by that: a claim stands in its way while it waits, and no less once it is held.
    mutating func grantWaiting(in situation: ClaimSituation) -> [ClaimAction] {
        trimAdmitted(now: situation.now)
        var actions = [ClaimAction]()
        var stillWaiting = [Entry]()
        for entry in waiting {
            if blockers(of: entry, behind: stillWaiting, situation.writers, now: situation.now).isEmpty {
                actions += grant(entry, now: situation.now)
            } else {
                stillWaiting.append(entry)
            }
        }
        waiting = stillWaiting
        return actions
    }
}
