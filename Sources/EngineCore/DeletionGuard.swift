/// Holds back deletions that look like a disaster and not like work (semantics section 7).
///
/// Within one minute, the deletion of more than half of a container with over 100 items, or of more than 10,000 items outside
/// one removed folder, is held until somebody confirms it.
package struct DeletionGuard: Sendable {
    package static let window = Duration.seconds(60)
    package static let smallestContainer = 100
    package static let mostItems = 10_000

    private var recent: [(at: Instant, count: Int)] = []
    /// What was confirmed is never asked about again, until it has been sent.
    private var confirmedUntil: Instant?

    package init() {}

    /// Whether a batch may be sent; if so it is counted.
    /// - Parameters:
    ///   - count: Deletions in the batch.
    ///   - underOneFolder: All of the batch, and of the minute before, lies below one removed folder.
    ///   - total: Items in the container before these deletions.
    package mutating func admits(_ count: Int, underOneFolder: Bool, total: Int, at now: Instant) -> Bool {
        guard count > 0 else { return true }
        if let until = confirmedUntil, now < until { return true }
        recent.removeAll { now - $0.at > Self.window }
        let already = recent.reduce(0) { $0 + $1.count }
        let sum = already + count
        let before = total + already
        if before > Self.smallestContainer, sum * 2 > before { return false }
        if sum > Self.mostItems, !underOneFolder { return false }
        recent.append((now, count))
        return true
    }

    /// Whether so many may be too many, should the container be small.
    package func dependsOnTotal(_ count: Int, at now: Instant) -> Bool {
        let already = recent.reduce(0) { now - $1.at > Self.window ? $0 : $0 + $1.count }
        return (already + count) * 2 > Self.smallestContainer
    }

    /// Whether what was held may go because the user said so.
    package func admitsConfirmed(at now: Instant) -> Bool { confirmedUntil.map { now < $0 } ?? false }

    /// The user said yes: what is held now goes, and whatever belongs to it.
    package mutating func confirm(at now: Instant) {
        confirmedUntil = now + Self.window
        recent.removeAll()
    }
}
