import UbiquityModel

extension ClaimTable {
    /// Who waits, and is waited for.
    private enum Node: Hashable {
        case party(PartyID)
        /// An ordinary program, by its process.
        case process(Int32)

        // Not inlined: Swift 6.3.1's optimizer fails on the callers otherwise ("ownership error" in CopyPropagation).
        @inline(never)
        init(_ entry: Entry) {
            if let party = entry.party { self = .party(party) } else { self = .process(entry.pid) }
        }
    }

    private struct Edge {
        var to: Node
        var holder: ClaimHolder
    }

    /// The cycle that `entry`, the last in the queue, closes: each waits for the next, and the last stands for the entry itself.
    func cycle(through entry: Entry, in situation: ClaimSituation) -> [ClaimHolder]? {
        let goal = Node(entry)
        var visited: Set<Node> = [goal]
        // Depth first; the path is the cycle when it arrives where it began.
        func search(_ node: Node) -> [ClaimHolder]? {
            for edge in edges(from: node, in: situation) {
                if edge.to == goal || edge.to == .process(entry.pid) { return [edge.holder] }
                guard visited.insert(edge.to).inserted else { continue }
                if let rest = search(edge.to) { return [edge.holder] + rest }
            }
            return nil
        }
        return search(goal)
    }

    /// Whom one waits for, in the order of the queue: the same table gives the same cycle.
    private func edges(from node: Node, in situation: ClaimSituation) -> [Edge] {
        let own = claims(heldBy: node)
        var edges = [Edge]()
        for index in waiting.indices { edges += self.edges(from: node, holding: own, waitingAt: index, in: situation) }
        return edges
    }

    private func claims(heldBy node: Node) -> Set<ClaimID> {
        var own: Set<ClaimID> = []
        for entry in held where Node(entry) == node { own.insert(entry.id) }
        return own
    }

    private func edges(
        from node: Node,
        holding own: Set<ClaimID>,
        waitingAt index: Int,
        in situation: ClaimSituation
    ) -> [Edge] {
        let entry = waiting[index]
        // A process waits when one of its connections does.
        if Node(entry) == node || .process(entry.pid) == node {
            let blockers = blockers(of: entry, behind: Array(waiting[..<index]), situation.writers, now: situation.now)
            return blockers.compactMap { blocker in self.node(blocker).map { Edge(to: $0, holder: blocker.holder) } }
        }
        // A claim ends only when what runs within it has ended.
        guard let part = entry.parts.first, entry.family.ancestors.contains(where: own.contains) else { return [] }
        return [Edge(to: Node(entry), holder: entry.holder(part, isHeld: false))]
    }

    /// The engine waits for nobody while it exchanges.
    private func node(_ blocker: Blocker) -> Node? {
        switch blocker {
        case .held(let entry, _), .waiting(let entry, _): Node(entry)
        case .writer(let writer): .process(writer.program.pid)
        case .exchange: nil
        }
    }
}
