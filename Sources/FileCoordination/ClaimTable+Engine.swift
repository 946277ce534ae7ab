import UbiquityModel

/// The engine's claim for the moment of one exchange.
package struct EngineExchange: Hashable, Sendable, Comparable {
    let number: UInt64

    package static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}

/// The engine's wait for something that it was not allowed to do.
package struct EngineWait: Hashable, Sendable {
    let number: UInt64
}

/// What the engine waits for.
struct EngineInterest: Hashable, Sendable {
    let id: EngineWait
    var access: ClaimAccess
    var area: ClaimArea
}

/// The sync engine's claims yield: it never waits here and nobody waits for its transfers; explicit claims wait for an exchange.
extension ClaimTable {
    /// Whether the engine may read (for an upload) or write (a change from elsewhere, eviction) at this moment: no explicit claim
    /// that is held stands against it, nor, for writing, one that waits.
    package func engineMay(_ access: ClaimAccess, _ area: ClaimArea) -> Bool {
        let part = Part(access: access, target: area.target, area: area)
        func stands(_ entry: Entry) -> Bool { entry.parts.contains { $0.conflicts(with: part) } }
        switch access {
        case .read: return !held.contains(where: stands)
        case .write: return !held.contains(where: stands) && !waiting.contains { $0.isExplicit && stands($0) }
        }
    }

    /// Begins an exchange, `nil` if the engine may not write now.
    package mutating func beginExchange(_ area: ClaimArea) -> EngineExchange? {
        guard engineMay(.write, area) else { return nil }
        let exchange = EngineExchange(number: newNumber())
        exchanges[exchange] = area
        return exchange
    }

    package mutating func endExchange(_ exchange: EngineExchange, in situation: ClaimSituation) -> [ClaimAction] {
        exchanges[exchange] = nil
        return grantWaiting(in: situation)
    }

    /// The engine wants to be told when asking again is worth it: `wakeEngine` comes once, now or later.
    package mutating func engineWaits(
        _ access: ClaimAccess,
        _ area: ClaimArea
    ) -> (wait: EngineWait, actions: [ClaimAction]) {
        let wait = EngineWait(number: newNumber())
        // The others are as they were: there may be one for each file of a large folder.
        if engineMay(access, area) { return (wait, [.wakeEngine(wait)]) }
        engineInterests.append(EngineInterest(id: wait, access: access, area: area))
        return (wait, [])
    }

    /// It no longer wants to.
    package mutating func engineGaveUp(_ waits: Set<EngineWait>) { engineInterests.removeAll { waits.contains($0.id) } }

    mutating func wakeEngine() -> [ClaimAction] {
        let free = engineInterests.filter { engineMay($0.access, $0.area) }.map(\.id)
        guard !free.isEmpty else { return [] }
        engineGaveUp(Set(free))
        return free.map { .wakeEngine($0) }
    }
}
