import Synchronization

/// Why nothing is fetched that nobody has asked for. Edits travel as ever.
///
/// Source: semantics section 3, "Energy".
package enum Restraint: UInt8, Sendable, CaseIterable {
    /// What travels over the device's link costs.
    case metered = 1
    /// The machine runs on battery.
    case battery = 2

    /// For people.
    package var inWords: String {
        switch self {
        case .metered: "the link costs (metered)"
        case .battery: "the machine runs on battery"
        }
    }
}

/// Whether there is a reason for restraint now.
final class FetchingRestraint: Sendable {
    /// 0: none.
    private let reason = Atomic<UInt8>(0)
    /// A leaf: memory work only.
    private let ended = Mutex<(@Sendable () -> Void)?>(nil)

    var current: Restraint? { Restraint(rawValue: reason.load(ordering: .relaxed)) }
    var isOn: Bool { current != nil }

    /// - Parameter ended: called at the end of each restraint, on the thread that ends it.
    func whenEnded(_ ended: @escaping @Sendable () -> Void) { self.ended.withLock { $0 = ended } }

    /// - Returns: what it was.
    func set(_ new: Restraint?) -> Restraint? {
        let former = Restraint(rawValue: reason.exchange(new?.rawValue ?? 0, ordering: .relaxed))
        if former != nil, new == nil {
            let ended = ended.withLock { $0 }
            ended?()
        }
        return former
    }
}
