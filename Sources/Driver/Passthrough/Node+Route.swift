import Synchronization
import SystemPackage

/// What the kernel has of an inode's backing file.
enum Backing: Sendable {
    case unbound
    /// A thread is at it; the continuations of others that need it.
    case binding([@Sendable () -> Void])
    /// Shared by all its opens: the kernel refuses two for one inode.
    case bound(Int32)
    /// Not this one: its handles are ordinary ones until the kernel forgets the inode, or the last of them is closed if another try may
    /// go better.
    case refused(mayTryAgain: Bool)
}

/// How the content gets to a handle that is being opened.
enum Route: Sendable {
    /// The kernel reads and writes the backing file with this id.
    case passthrough(Int32)
    /// Requests come here; nothing is cached, so that another handle may be of the other kind later.
    case uncached
    /// Requests come here, and the kernel caches what was read.
    case cached
}

extension Node {
    enum Choice: Sendable {
        /// Counted: `endRoute` must follow.
        case route(Route)
        /// The caller binds the backing file, calls `endBinding`, and asks again.
        case bind
        /// The continuation runs later, and asks again.
        case waits
    }

    /// - Parameters:
    ///   - isStreaming: the content is not all here.
    ///   - mayPass: whether this mount passes through at all.
    func chooseRoute(isStreaming: Bool, mayPass: Bool, again: @escaping @Sendable () -> Void) -> Choice {
        state.withLock { state in
            // A direct handle proves that it has become whole since that was looked at, and the kernel would refuse the other kind.
            if isStreaming, state.direct == 0 {
                state.indirect += 1
                return .route(.uncached)
            }
            guard mayPass else {
                state.indirect += 1
                return .route(.cached)
            }
            // While an older streaming handle lives on the kernel refuses the other kind.
            guard state.indirect == 0 || state.direct > 0 else {
                state.indirect += 1
                if case .refused = state.backing { return .route(state.ordinaryRoute) }
                return .route(.uncached)
            }
            switch state.backing {
            case .bound(let id):
                state.direct += 1
                state.wasPassed = true
                return .route(.passthrough(id))
            case .unbound:
                state.backing = .binding([])
                return .bind
            case .binding(let waiting):
                state.backing = .binding(waiting + [again])
                return .waits
            case .refused:
                state.indirect += 1
                return .route(state.ordinaryRoute)
            }
        }
    }

    /// - Parameter backing: bound or refused.
    /// - Returns: the continuations of those that waited.
    func endBinding(_ backing: Backing) -> [@Sendable () -> Void] {
        state.withLock { state in
            guard case .binding(let waiting) = state.backing else { return [] }
            state.backing = backing
            return waiting
        }
    }

    /// - Returns: the id, if the inode has no name any more and the kernel needs it no longer: the disk gets its room back.
    func endRoute(isDirect: Bool) -> Int32? {
        state.withLock { state in
            guard isDirect else {
                state.indirect -= 1
                if state.indirect == 0, case .refused(mayTryAgain: true) = state.backing { state.backing = .unbound }
                return nil
            }
            state.direct -= 1
            guard state.direct == 0, !state.isNamed, case .bound(let id) = state.backing else { return nil }
            state.backing = .unbound
            return id
        }
    }

    /// Gives up the id while no handle uses it. `nil`: there is none, or it is in use.
    func takeBacking() -> Int32? {
        state.withLock { state in
            guard state.direct == 0, case .bound(let id) = state.backing else { return nil }
            state.backing = .unbound
            return id
        }
    }
}

extension Node.State {
    /// What the kernel has cached of a file before programs wrote to it past the cache is old, and mappings may still write so.
    fileprivate var ordinaryRoute: Route { wasPassed ? .uncached : .cached }
}
