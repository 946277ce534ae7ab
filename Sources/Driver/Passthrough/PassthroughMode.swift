import SystemPackage

/// How reads and writes of whole files get to the disk: decided at the start of a mount, since the kernel is told in the first reply.
package enum DriverMode: Sendable, Hashable {
    /// The best that is possible.
    case best
    /// Through this process, even where the kernel could do it.
    case ordinary

    /// - Parameter name: of `UBIQUITY_DRIVER`: `ordinary`; anything else is the best.
    package init(named name: String?) { self = name == "ordinary" ? .ordinary : .best }
}

/// What was found out about kernel passthrough.
enum Passthrough: Sendable {
    case available(Setup)
    case unavailable(Obstacle)

    struct Setup: Sendable {
        var channel: BackingChannel
        /// As the kernel counts stacked filesystems.
        var stackDepth: UInt32
        /// Whether the disk's times tell of every change that follows a look at them (multigrain timestamps, Linux 6.13).
        var hasFineTimes: Bool
    }

    var setup: Setup? { if case .available(let setup) = self { setup } else { nil } }

    enum Obstacle: Sendable, Hashable {
        case notWanted
        /// Linux before 6.9, or built without it.
        case kernel
        /// Neither CAP_SYS_ADMIN nor a helper.
        case privilege
        /// There is one, and it does not answer.
        case silence
        case refused(Errno)
    }

    /// For `ubiquity status`: what runs, and what would enable the better mode.
    var description: String {
        switch self {
        case .available(let setup):
            switch setup.channel {
            case .own: "kernel passthrough"
            case .helper(let helper) where helper.isAway:
                "kernel passthrough, but the passthrough helper is away: files take the ordinary way until it is back"
            case .helper: "kernel passthrough, by the passthrough helper"
            }
        case .unavailable(let obstacle): "ordinary FUSE (\(obstacle.description))"
        }
    }
}

extension Passthrough.Obstacle {
    var description: String {
        switch self {
        case .notWanted: "kernel passthrough is switched off by UBIQUITY_DRIVER=ordinary"
        case .kernel: "kernel passthrough needs Linux 6.9 or later"
        case .privilege: "for kernel passthrough install the passthrough helper: Tools/install-passthrough-helper"
        case .silence: "the passthrough helper does not answer; it is asked again at the next start"
        case .refused(let error): "the kernel refuses passthrough to this disk: \(error)"
        }
    }
}
