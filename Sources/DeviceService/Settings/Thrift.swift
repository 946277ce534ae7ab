package import SyncEngine

/// When nothing is fetched that nobody has asked for (`ubiquity config set metered`).
///
/// Source: semantics section 3, "Energy".
package enum Thrift: String, Sendable, CaseIterable {
    /// While the machine says that its link costs, or that it runs on battery.
    case auto
    case on
    case off

    package func restraint(_ conditions: MachineConditions) -> Restraint? {
        switch self {
        case .on: .metered
        case .off: nil
        case .auto where conditions.isMetered: .metered
        case .auto: conditions.isOnBattery ? .battery : nil
        }
    }
}

/// What a machine says of itself, as far as it says anything.
package struct MachineConditions: Sendable, Hashable {
    package var isMetered = false
    package var isOnBattery = false

    package init(isMetered: Bool = false, isOnBattery: Bool = false) {
        self.isMetered = isMetered
        self.isOnBattery = isOnBattery
    }
}
