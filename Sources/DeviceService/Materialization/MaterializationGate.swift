internal import Logging
internal import Synchronization
internal import UbiquityControl

/// Says of threads whether their reads may fetch content. The policy in it can change at any moment, and counts from then on: nothing
/// that it has said is kept.
final class MaterializationGate: Sendable {
    private struct State: Sendable {
        var policy: MaterializationPolicy
        /// Rules that have denied somebody: each is told of once.
        var told: Set<String> = []
    }

    /// Guards memory only; a leaf in the order of locks.
    private let state: Mutex<State>
    /// Orders changes; held while files are read and written.
    private let updating = Mutex(())
    private let lookup = ProgramLookup()
    private let logger: Logger

    init(_ policy: MaterializationPolicy, logger: Logger) {
        state = Mutex(State(policy: policy))
        self.logger = logger
    }

    /// Takes over the policy that `body` returns, which may read and write files: one at a time, never on a request thread.
    func update(
        _ body: () throws(ControlError) -> MaterializationPolicy
    ) throws(ControlError) -> MaterializationPolicy {
        try updating.withLock { _ throws(ControlError) in
            let policy = try body()
            state.withLock { state in
                if state.policy != policy { state.told = [] }
                state.policy = policy
            }
            return policy
        }
    }

    /// Calls `completion` once: at once if that is possible, else within `ProgramLookup.patience`. Thread 0 is nobody in particular, and
    /// may: what the kernel does for itself has been read before.
    func judge(_ thread: Int32, completion: @escaping @Sendable (Bool) -> Void) {
        let line = lookup.line(of: thread)
        if let allowed = judge(line, isFinal: false) { return completion(allowed) }
        lookup.readScripts(of: line) { [self] in
            // Whoever read the script may have died meanwhile; its ancestors have been seen.
            var known = line
            let now = lookup.line(of: thread)
            if !now.isEmpty { known = now }
            completion(judge(known, isFinal: true) ?? true)
        }
    }

    private func judge(_ line: [ProgramLookup.Sighting], isFinal: Bool) -> Bool? {
        let (verdict, isNews) = state.withLock { state in
            let verdict = state.policy.verdict(on: line.map(\.program), isFinal: isFinal)
            guard case .denied(let rule) = verdict else { return (verdict, false) }
            return (verdict, state.told.insert(rule).inserted)
        }
        switch verdict {
        case .allowed: return true
        case .unread: return nil
        case .denied(let rule):
            if isNews {
                let program = line.first.map { $0.program.names.first ?? $0.program.commandName } ?? ""
                logger.notice("may not fetch content", metadata: ["program": "\(program)", "rule": "\(rule)"])
            }
            return false
        }
    }
}
