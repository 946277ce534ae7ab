import Synchronization

/// Whether what travels over the device's link costs: then nothing is fetched that nobody has asked for. Edits travel as ever.
///
/// Source: semantics section 3, "Energy".
final class LinkCost: Sendable {
    private let metered = Atomic(false)

    var isMetered: Bool { metered.load(ordering: .relaxed) }

    /// - Returns: what it was.
    func set(_ isMetered: Bool) -> Bool { metered.exchange(isMetered, ordering: .relaxed) }
}
