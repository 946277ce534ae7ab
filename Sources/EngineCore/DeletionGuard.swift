package import UbiquityModel

/// Holds back deletions that look like a disaster and not like work (semantics section 7).
///
/// Within one minute, the deletion of more than half of a container with over 100 items, or of more than 10,000 items outside
/// one removed folder, is held until somebody confirms it.
package struct DeletionGuard: Sendable {
    package static let window = Duration.seconds(60)
    package static let smallestContainer = 100
    package static let mostItems = 10_000

    private var recent: [(at: Instant, count: Int, folder: ItemPath)] = []

    package init() {}

    package enum Answer: Hashable, Sendable {
        case admitted
        /// - Parameter untilRemoved: all of it, and of the minute before, lies below that folder: if it goes as well, all of it may.
        case held(untilRemoved: ItemPath?)
    }

    /// Whether a batch may be sent; if so it is counted.
    /// - Parameters:
    ///   - count: Deletions in the batch.
    ///   - known: Deletions that are known of, with those of the batch: what is about to be sent counts as well.
    ///   - folder: What all of them are or lie below.
    ///   - total: Items in the container before these deletions.
    ///   - isRemoved: Whether a folder is gone.
    package mutating func judge(
        _ count: Int,
        known: Int = 0,
        below folder: ItemPath,
        total: Int,
        at now: Instant,
        isRemoved: (ItemPath) -> Bool
    ) -> Answer {
        guard count > 0 else { return .admitted }
        recent.removeAll { now - $0.at > Self.window }
        let already = recent.reduce(0) { $0 + $1.count }
        let sum = already + max(count, known)
        let before = total + already
        if before > Self.smallestContainer, sum * 2 > before { return .held(untilRemoved: nil) }
        if sum > Self.mostItems {
            let all = recent.reduce(folder) { $0.common(with: $1.folder) }
            if all.isRoot { return .held(untilRemoved: nil) }
            // `rm` removes a folder last.
            if !isRemoved(all) { return .held(untilRemoved: all) }
        }
        recent.append((now, count, folder))
        return .admitted
    }

    /// Whether so many may be too many, should the container be small.
    package func dependsOnTotal(_ count: Int, at now: Instant) -> Bool {
        let already = recent.reduce(0) { now - $1.at > Self.window ? $0 : $0 + $1.count }
        return (already + count) * 2 > Self.smallestContainer
    }

    /// The user has said that all of it may go: none of it counts for what follows.
    package mutating func forgetRecent() { recent.removeAll() }
}
