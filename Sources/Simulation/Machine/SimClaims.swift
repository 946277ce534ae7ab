import EngineCore
import UbiquityModel

/// What programs on a machine have claimed, as the broker of its service knows it.
struct SimClaims {
    private var claims: [Int: (path: ItemPath, isWriting: Bool)] = [:]
    private var count = 0

    mutating func begin(_ path: ItemPath, isWriting: Bool) -> Int {
        count += 1
        claims[count] = (path, isWriting)
        return count
    }

    /// - Returns: false if it was none any more.
    mutating func end(_ number: Int) -> Bool { claims.removeValue(forKey: number) != nil }

    /// The service that knew of them is no more.
    mutating func endAll() { claims = [:] }

    /// Whether anybody who reads has to wait for it: somebody writes there.
    func hasWriter(_ path: ItemPath) -> Bool { claims.values.contains { $0.isWriting && Self.meets($0.path, path) } }

    func covers(_ path: ItemPath) -> Bool { claims.values.contains { Self.meets($0.path, path) } }

    private static func meets(_ one: ItemPath, _ other: ItemPath) -> Bool {
        one.names.starts(with: other.names) || other.names.starts(with: one.names)
    }
}

extension SimDevice {
    func mayRead(_ path: ItemPath) -> Bool {
        guard machine.claims.hasWriter(path) else { return true }
        world.count(.claims)
        return false
    }

    /// Whether an act there is put off.
    func isClaimed(_ path: ItemPath) -> Bool {
        guard machine.claims.covers(path) else { return false }
        world.count(.claims)
        return true
    }

    func wake(_ works: Set<EngineCore.Work>, whenFree path: ItemPath) {
        guard !isDead else { return }
        // It may have become free since it was asked for.
        guard machine.claims.covers(path) else { return later(10...1_000) { $0.wake(works) } }
        waitingForClaims.append((path, works))
    }

    func claimEnded() {
        let free = waitingForClaims.filter { !machine.claims.covers($0.path) }
        waitingForClaims.removeAll { !machine.claims.covers($0.path) }
        for waiting in free { later(10...1_000) { $0.wake(waiting.works) } }
    }

    private func wake(_ works: Set<EngineCore.Work>) {
        for work in works.sorted() { synchronizer.handle(.woken(work)) }
    }
}
