import UbiquityModel

/// What the broker is to do, in order.
package enum ClaimAction: Hashable, Sendable {
    /// The claim is held from now on. The paths are those of the moment, in the order asked for.
    case grant(ClaimID, [ClaimTarget])
    /// A plain open goes on.
    case admit(ClaimID)
    /// A claim or a plain open ends without having been granted.
    case refuse(ClaimID, ClaimRefusal)
    /// For the engine, asking again is worth it: the end of that wait.
    case wakeEngine(EngineWait)
}

package enum ClaimRefusal: Hashable, Sendable {
    /// It waited as long as it may. Who stood in the way.
    case timedOut([ClaimHolder])
    /// It was not to wait at all. Who stands in the way.
    case wouldWait([ClaimHolder])
    /// Waiting would close a cycle: it would wait for the first, each waits for the next, and the last is its own.
    case deadlock([ClaimHolder])
    /// The item that was to be read was deleted meanwhile.
    case deleted(ClaimTarget)
    /// Too many wait already.
    case tooManyWaiting
}

/// Who stands in the way of others.
package struct ClaimHolder: Hashable, Sendable {
    package enum Role: Hashable, Sendable {
        case holds(ClaimID)
        /// Asked earlier.
        case waits(ClaimID)
        /// An ordinary program that has the file open for writing.
        case writes
        /// The sync engine, for the moment of an exchange.
        case synchronizes
    }

    package var role: Role
    package var program: String
    /// 0 for the engine.
    package var pid: Int32
    package var access: ClaimAccess
    package var target: ClaimTarget

    package init(role: Role, program: String, pid: Int32, access: ClaimAccess, target: ClaimTarget) {
        self.role = role
        self.program = program
        self.pid = pid
        self.access = access
        self.target = target
    }
}

extension ClaimHolder: CustomStringConvertible {
    package var description: String {
        switch role {
        case .holds: "\(program) (pid \(pid)) holds a \(access.rawValue) claim on \(target.path)"
        case .waits: "\(program) (pid \(pid)) waits for a \(access.rawValue) claim on \(target.path)"
        case .writes: "\(program) (pid \(pid)) has \(target.path) open for writing"
        case .synchronizes: "\(program) is bringing \(target.path) up to date"
        }
    }
}

/// A line of `ubiquity claims`.
package struct ClaimListing: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        case held
        /// Who stands in the way.
        case waiting(for: [ClaimHolder])
    }

    package var id: ClaimID
    package var state: State
    package var program: String
    package var pid: Int32
    package var purpose: String?
    /// A plain open that waits, not a claim.
    package var isOpen: Bool
    package var items: [(access: ClaimAccess, target: ClaimTarget)] { parts.map { ($0.access, $0.target) } }

    let parts: [Part]
    struct Part: Hashable, Sendable {
        var access: ClaimAccess
        var target: ClaimTarget
    }
}
