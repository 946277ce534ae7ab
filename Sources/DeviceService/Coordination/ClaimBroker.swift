internal import Dispatch
internal import Driver
internal import FileCoordination
internal import Glibc
internal import Logging
internal import SyncEngine
internal import Synchronization
internal import SystemPackage
internal import UbiquityControl
internal import UbiquityModel

/// Drives the claim table: asks it about what programs and the engine do, and carries out what it says.
///
/// Request threads of the driver and the engine ask what can be answered from memory, under the lock. Everything that may end a
/// wait runs on the broker's own queue, one after the other: an answer is registered there before anything can give it.
final class ClaimBroker: Sendable {
    private struct State {
        var table: ClaimTable
        var exchanges: [UInt64: EngineExchange] = [:]
        var nextToken: UInt64 = 1
        var mounts: [ContainerID: Mount] = [:]
        /// The processes of held and waiting claims, to recognise their descendants by.
        var processes: [ClaimID: Int32] = [:]
    }

    enum ClaimAnswer: Sendable {
        /// With the items' paths of the moment.
        case granted(ClaimID, [ClaimTarget])
        case refused(ClaimRefusal)
        /// Whoever asked is gone.
        case abandoned
    }

    /// Who waits for an answer. Touched on the queue only.
    private struct Waiters {
        var claims: [ClaimID: (party: PartyID, answer: @Sendable (ClaimAnswer) -> Void)] = [:]
        var opens: [ClaimID: @Sendable (Errno?) -> Void] = [:]
        var engine: [EngineWait: (container: ContainerID, resume: @Sendable () -> Void)] = [:]
        /// When the table is asked next whether anybody has waited long enough, and which timer that is: the latest one.
        var timer: Duration?
        var timerGeneration = 0
    }

    let logger: Logger
    /// A plain open that waits for an explicit claim waits at most so long (`claim-limit`). A leaf.
    private let openLimit: Mutex<Duration>
    let parties = PartyLookup()
    private let queue = DispatchQueue(label: "ubi-claims")
    /// Guards memory only: never held while anybody is told anything. A leaf in the order of locks.
    private let state: Mutex<State>
    private let waiters = Mutex(Waiters())
    private let hasClaims = Atomic(false)
    /// Files that are closed while the queue is at it are one event.
    private let isWritersChangeQueued = Atomic(false)
    private let started = ContinuousClock.now

    init(openLimit: Duration, logger: Logger) {
        self.openLimit = Mutex(openLimit)
        self.logger = logger
        // Numbers that no earlier service has given: claims are in the environment of programs that outlive it.
        state = Mutex(State(table: ClaimTable(firstNumber: UInt64(Timestamp.now().nanoseconds / 1000))))
    }

    /// For opens from now on; those that wait keep their time.
    func setOpenLimit(_ limit: Duration) { openLimit.withLock { $0 = limit } }

    func claims(of container: ContainerID) -> ContainerClaims { ContainerClaims(broker: self, container: container) }

    func attach(_ mount: Mount, to container: ContainerID) { state.withLock { $0.mounts[container] = mount } }

    /// Its engine waits no longer for anybody.
    func detach(_ container: ContainerID) {
        state.withLock { $0.mounts[container] = nil }
        queue.async {
            let ended = self.waiters.withLock { waiters in
                let found = waiters.engine.filter { $0.value.container == container }
                for wait in found.keys { waiters.engine[wait] = nil }
                return found
            }
            guard !ended.isEmpty else { return }
            let waits = Set(ended.keys)
            self.update { $0.table.engineGaveUp(waits) }
            for waiter in ended.values { waiter.resume() }
        }
    }

    var now: Duration { ContinuousClock.now - started }

    // MARK: - Explicit claims

    /// Waits for a claim. The party's end, when its connection closes, ends the wait too.
    /// - Parameter isKnown: called when the claim is held or waits: an end of the party that is told of from then on is its end as well.
    func claim(
        _ request: FileCoordination.ClaimRequest,
        isKnown: @escaping @Sendable () -> Void
    ) async -> ClaimAnswer {
        await withCheckedContinuation { continuation in
            queue.async {
                let situation = self.situation()
                let (claim, actions) = self.update { state in
                    let (claim, actions) = state.table.request(request, in: situation)
                    state.processes[claim] = request.pid
                    return (claim, actions)
                }
                self.waiters.withLock { $0.claims[claim] = (request.party, { continuation.resume(returning: $0) }) }
                isKnown()
                self.perform(actions)
            }
        }
    }

    /// The connection is gone: its claims end, and whoever waits for one of them is told.
    func ended(_ party: PartyID) {
        change { table, situation in table.ended(party, in: situation) }
        queue.async {
            let orphans = self.waiters.withLock { waiters in
                let found = waiters.claims.filter { $0.value.party == party }
                for id in found.keys { waiters.claims[id] = nil }
                return found.values.map(\.answer)
            }
            for answer in orphans { answer(.abandoned) }
        }
    }

    /// Returns when they are released, and whoever waited for one of them was told.
    func releaseAll(of party: PartyID) async {
        ended(party)
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }

    func release(_ claim: ClaimID) {
        change { table, situation in table.release(claim, in: situation) }
    }

    func listing() async -> [ClaimListing] {
        await withCheckedContinuation { continuation in
            queue.async {
                let situation = self.situation()
                continuation.resume(returning: self.state.withLock { $0.table.listing(in: situation) })
            }
        }
    }

    // MARK: - What programs do

    /// Cheap: read at every open and change.
    var claimsExist: Bool { hasClaims.load(ordering: .relaxed) }

    /// `nil`: the open goes on at once.
    func openWaits(
        _ target: ClaimTarget,
        forWriting: Bool,
        mayWait: Bool,
        threadID: Int32,
        completion: @escaping @Sendable (Errno?) -> Void
    ) -> ContentRequest? {
        let area = ClaimArea(target)
        let limit = openLimit.withLock { $0 }
        // Nobody in the way, whoever asks: no need to know who it is.
        let stranger = ClaimProgram(pid: threadID, name: "")
        let goesOn = state.withLock { $0.table.admits(area, forWriting: forWriting, by: stranger, now: now) }
        if goesOn { return nil }
        let wait = OpenWait()
        queue.async {
            guard !wait.isCancelled else { return completion(.interrupted) }
            let program = self.program(threadID)
            // The service opens files only to bring their content here: whoever that is for asks for the claim himself, or holds the very
            // one that is in the way.
            guard program.pid != getpid() else { return completion(nil) }
            let situation = self.situation()
            let (open, actions) = self.update { state in
                state.table.open(
                    area,
                    forWriting: forWriting,
                    by: program,
                    mayWait: mayWait,
                    timeout: limit,
                    in: situation
                )
            }
            self.waiters.withLock { $0.opens[open] = completion }
            wait.begin(open)
            self.perform(actions)
        }
        return ContentRequest {
            guard let open = wait.cancel() else { return }
            self.release(open)
            self.queue.async {
                let completion = self.waiters.withLock { $0.opens.removeValue(forKey: open) }
                completion?(.interrupted)
            }
        }
    }

    /// Whether a change of an item's content that cannot wait meets an explicit claim of another party.
    func contentChangeRefused(_ target: ClaimTarget, threadID: Int32) -> Bool {
        isRefused([ClaimArea(target, coversSubtree: true)], threadID)
    }

    /// Whether a change of entries that cannot wait meets an explicit claim of another party.
    func changeRefused(_ targets: [ClaimTarget], threadID: Int32) -> Bool {
        var areas = [ClaimArea]()
        for target in targets {
            areas.append(ClaimArea(target, coversSubtree: true))
            areas.append(ClaimArea(ClaimTarget(container: target.container, path: target.path.parent)))
        }
        return isRefused(areas, threadID)
    }

    private func isRefused(_ areas: [ClaimArea], _ threadID: Int32) -> Bool {
        func isRefused(_ within: Set<ClaimID>) -> Bool {
            state.withLock { state in
                !state.table.holders(blockingChangeOf: areas, by: ClaimProgram(pid: threadID, name: "", within: within))
                    .isEmpty
            }
        }
        // Ancestors are known without touching the process's memory; its environment is read elsewhere, and not for long.
        guard isRefused([]) else { return false }
        if !isRefused(inherited(threadID)) { return false }
        return isRefused(program(threadID).within)
    }

    /// A file that a program had open for writing was closed.
    func writersChanged() {
        // Whoever comes to wait later looks at the writers of that moment.
        guard claimsExist, state.withLock({ $0.table.hasWaiting }),
            !isWritersChangeQueued.exchange(true, ordering: .relaxed)
        else { return }
        queue.async {
            self.isWritersChangeQueued.store(false, ordering: .relaxed)
            let situation = self.situation()
            self.perform(self.update { $0.table.writersChanged(in: situation) })
        }
    }

    func moved(_ old: ClaimTarget, to new: ItemPath) {
        guard claimsExist else { return }
        change { table, situation in table.moved(old, to: new, in: situation) }
    }

    /// - Parameter isGone: asked on the broker's queue, whether there is really nothing of that name.
    func deleted(_ target: ClaimTarget, if isGone: @escaping @Sendable () -> Bool) {
        guard claimsExist else { return }
        queue.async {
            guard isGone() else { return }
            let situation = self.situationForWaiting()
            self.perform(self.update { $0.table.deleted(target, in: situation) })
        }
    }

    // MARK: - The engine

    func engineMay(_ access: ClaimAccess, _ area: ClaimArea) -> Bool {
        !claimsExist || state.withLock { $0.table.engineMay(access, area) }
    }

    func beginExchange(_ area: ClaimArea) -> ClaimToken? {
        state.withLock { state in
            guard let exchange = state.table.beginExchange(area) else { return nil }
            let token = ClaimToken(number: state.nextToken)
            state.nextToken += 1
            state.exchanges[token.number] = exchange
            return token
        }
    }

    func endExchange(_ token: ClaimToken) {
        let awaited: EngineExchange? = state.withLock { state in
            guard let exchange = state.exchanges.removeValue(forKey: token.number) else { return nil }
            // Without claims nothing can wait for it: asked under the lock under which somebody comes to wait.
            guard !state.table.hasClaims else { return exchange }
            _ = state.table.endExchange(exchange, in: ClaimSituation(now: now, writers: []))
            return nil
        }
        guard let awaited else { return }
        change { table, situation in table.endExchange(awaited, in: situation) }
    }

    func whenEngineMay(_ access: ClaimAccess, _ area: ClaimArea) async {
        await withCheckedContinuation { continuation in
            queue.async {
                let (wait, actions) = self.update { $0.table.engineWaits(access, area) }
                self.waiters.withLock { $0.engine[wait] = (area.target.container, { continuation.resume() }) }
                self.perform(actions)
            }
        }
    }

    // MARK: - Driving the table

    /// An event that may end waits.
    private func change(_ event: @escaping @Sendable (inout ClaimTable, ClaimSituation) -> [ClaimAction]) {
        queue.async {
            let situation = self.situationForWaiting()
            self.perform(self.update { event(&$0.table, situation) })
        }
    }

    private func update<Value: Sendable>(_ body: (inout State) -> sending Value) -> Value {
        state.withLock { state in
            let value = body(&state)
            hasClaims.store(state.table.hasClaims, ordering: .relaxed)
            if !state.table.hasClaims { state.processes = [:] }
            return value
        }
    }

    /// On the queue only.
    private func perform(_ actions: [ClaimAction]) {
        for action in actions {
            switch action {
            case .grant(let claim, let targets):
                let waiter = waiters.withLock { $0.claims.removeValue(forKey: claim) }
                waiter?.answer(.granted(claim, targets))
            case .admit(let open):
                let completion = waiters.withLock { $0.opens.removeValue(forKey: open) }
                completion?(nil)
            case .refuse(let id, let refusal):
                let (waiter, completion) = waiters.withLock { waiters in
                    (waiters.claims.removeValue(forKey: id), waiters.opens.removeValue(forKey: id))
                }
                waiter?.answer(.refused(refusal))
                completion?(refusal.errno)
            case .wakeEngine(let wait):
                let waiter = waiters.withLock { $0.engine.removeValue(forKey: wait) }
                waiter?.resume()
            }
        }
        setTimer()
    }

    private func setTimer() {
        guard let deadline = state.withLock({ $0.table.nextDeadline }) else { return }
        let generation: Int? = waiters.withLock { waiters in
            // One that comes earlier sets the next one.
            if let timer = waiters.timer, timer <= deadline { return nil }
            waiters.timer = deadline
            waiters.timerGeneration += 1
            return waiters.timerGeneration
        }
        guard let generation else { return }
        let delay = max(.zero, deadline - now).components
        queue.asyncAfter(
            deadline: .now() + .nanoseconds(Int(delay.seconds * 1_000_000_000 + delay.attoseconds / 1_000_000_000))
        ) {
            let isLatest = self.waiters.withLock { waiters in
                guard waiters.timerGeneration == generation else { return false }
                waiters.timer = nil
                return true
            }
            guard isLatest else { return }
            let situation = self.situation()
            self.perform(self.update { $0.table.timePassed(in: situation) })
        }
    }

    /// Where nobody waits, nothing depends on the writers. On the queue only, where alone somebody comes to wait.
    private func situationForWaiting() -> ClaimSituation {
        state.withLock { $0.table.hasWaiting } ? situation() : ClaimSituation(now: now, writers: [])
    }

    /// What programs have open for writing at this moment. On the queue only: it looks processes up.
    private func situation() -> ClaimSituation {
        let mounts = state.withLock { $0.mounts }.sorted { $0.key < $1.key }
        var writers = [ProgramWriter]()
        for (container, mount) in mounts {
            for writer in mount.writers(under: nil) {
                let area = ClaimArea(ClaimTarget(container: container, path: writer.path))
                writers.append(ProgramWriter(area: area, program: program(writer.process)))
            }
        }
        return ClaimSituation(now: now, writers: writers)
    }

    // MARK: - Who it is

    private func program(_ threadID: Int32) -> ClaimProgram {
        let process = parties.process(ofThread: threadID)
        let name = ProcessTable.program(of: process) ?? "a program"
        if let claim = parties.claim(inEnvironmentOf: process).flatMap({ ClaimID($0) }),
            state.withLock({ $0.processes[claim] != nil })
        {
            return ClaimProgram(pid: process, name: name, within: [claim])
        }
        return ClaimProgram(pid: process, name: name, within: inherited(process))
    }

    /// The claims of a process and of those that it descends from.
    private func inherited(_ process: Int32) -> Set<ClaimID> {
        let processes = state.withLock { $0.processes }
        guard !processes.isEmpty else { return [] }
        let line = Set(parties.ancestry(of: process))
        return Set(processes.filter { line.contains($0.value) }.keys)
    }
}

/// Joins an open's wait with its cancellation, whichever comes first.
private final class OpenWait: Sendable {
    private let state = Mutex<(open: ClaimID?, isCancelled: Bool)>((nil, false))

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func begin(_ open: ClaimID) { state.withLock { $0.open = open } }

    func cancel() -> ClaimID? {
        state.withLock { state in
            state.isCancelled = true
            return state.open
        }
    }
}

extension ClaimRefusal {
    /// For a plain open (semantics section 12).
    fileprivate var errno: Errno {
        switch self {
        case .timedOut: .resourceBusy
        case .wouldWait: .wouldBlock
        case .deadlock: .deadlock
        case .deleted: .noSuchFileOrDirectory
        case .tooManyWaiting: .resourceTemporarilyUnavailable
        }
    }
}
