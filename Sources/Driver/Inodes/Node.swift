import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// An inode that the kernel knows, or that the engine is working on. It lives from the first lookup to the last forget.
///
/// Everything that changes is in `state`; the mutex is held for memory work only, and never while another lock is taken.
final class Node: Sendable {
    let id: UInt64
    let key: InodeKey
    let kind: LocalKind
    let state: Mutex<State>

    /// What our own attributes say of the inode. Kept right by everything that changes them, so that no request has to read them again.
    struct Facts: Sendable, Equatable {
        /// While there is one, size, modification time and mode are its own.
        var placeholder: Placeholder?
        /// The true mode (0o7777) where the inode on disk keeps more.
        var mode: UInt16?
    }

    enum Phase: Sendable, Equatable {
        case free
        /// The engine replaces, removes or evicts it at this moment: opens wait (they are continued from `held`).
        case held
        /// The engine has replaced or removed it: whoever opens it by a name must look the name up again.
        case replaced
    }

    struct State: Sendable {
        /// Where it was last seen. Of an inode with several names, one of them.
        var parent: InodeKey
        var name: Name
        /// False once that name is gone.
        var isNamed: Bool
        /// It was seen with several names, or given one more. Then it is taken to have them for good.
        var mayHaveOtherNames = false
        /// Further names under which it was seen, and which it had not lost as far as was seen: when the one above goes, one of them takes its
        /// place. Of very many the last ones.
        var otherLinks: [Link] = []
        /// Of a package's folder: where it was, if the engine has put another state of it there, or nothing. Programs that are in it go on.
        var wasPackage: (parent: InodeKey, name: Name)?
        /// Keeps an inode reachable that has no known name.
        var pinned: SharedDescriptor?
        var facts: Facts
        /// How often the engine has made it dataless: what was read of it before is not to be believed after.
        var evictions = 0
        var handles = 0
        /// When it was last opened, by `Node.coarseTime`.
        var lastUse: Int64 = 0
        /// Of these, the writable ones, and truncations by name that are under way.
        var writers = 0
        /// Truncations by name that wait for content: the kernel keeps the inode locked for them.
        var truncations = 0
        /// Changes of mode or times by programs that are under way.
        var changes = 0
        /// Written to since the engine last collected it.
        var isDirty = false
        /// Filled while it was open: the kernel asks for the attributes again once it is closed. (The change time moves with filling,
        /// and `tar` takes that for somebody's writing.)
        var attributesAreOld = false
        var phase = Phase.free
        var held: [@Sendable () -> Void] = []
        /// Threads that were told to look the name up again. One that comes back here has no name to look up (an open through /proc, by
        /// descriptor), and is served.
        var sentAway: [Int32] = []
        /// Handles by the placeholder that they stream from: one, unless older ones outlived a discarded content.
        var streaming: [ObjectIdentifier: Int] = [:]
        /// Handles that the kernel serves from the backing file, and those whose reads and writes come here. The kernel allows an inode
        /// only one of both kinds at a time.
        var direct = 0
        var indirect = 0
        var backing = Backing.unbound
        /// Since the kernel knows the inode, some handle was a direct one.
        var wasPassed = false
        /// How the inode looked when its change was last noted, while programs may write to it without our seeing it.
        var written: WrittenEvidence?
        /// They did, since the first of them opened it.
        var wasWrittenDirectly = false
        /// The kernel has opened the backing file for programs: mappings of it live on when their handles are closed. Or it may have, for
        /// an earlier mount: what that opened lives on as well.
        var mayBeMapped = false
        var directWriters = DirectWriters()
        /// It was made through the mount and never given any (capabilities(7)). That is not concluded from a look at the disk, which
        /// somebody may just be giving it some on.
        var isWithoutCapabilities = false
    }

    struct Link: Equatable, Sendable {
        var parent: InodeKey
        var name: Name
    }

    /// - Parameter mayBeOld: whether it may have been opened through an earlier mount.
    init(
        id: UInt64,
        key: InodeKey,
        kind: LocalKind,
        parent: InodeKey,
        name: Name,
        facts: Facts,
        mayBeOld: Bool = false
    ) {
        self.id = id
        self.key = key
        self.kind = kind
        var state = State(parent: parent, name: name, isNamed: true, facts: facts)
        // What is dataless was in nobody's hands when it became that.
        state.mayBeMapped = mayBeOld && kind == .file && facts.placeholder == nil
        state.directWriters.mayHaveMapped = state.mayBeMapped
        self.state = Mutex(state)
    }

    /// Where it is; nil if its name is gone.
    var link: (parent: InodeKey, name: Name)? { state.withLock { $0.isNamed ? ($0.parent, $0.name) : nil } }
    var facts: Facts { state.withLock { $0.facts } }
    var isReplaced: Bool { state.withLock { $0.phase == .replaced } }
    var isDataless: Bool { state.withLock { $0.facts.placeholder != nil } }

    private static let otherLinksLimit = 16

    /// It was seen at a place, or moved there from another one.
    func setLink(_ parent: InodeKey, _ name: Name, isOneOfMany: Bool = false, movedFrom former: Link? = nil) {
        let pinned = state.withLock { state in
            if isOneOfMany { state.mayHaveOtherNames = true }
            let (known, new) = (Link(parent: state.parent, name: state.name), Link(parent: parent, name: name))
            if state.mayHaveOtherNames {
                state.otherLinks.removeAll { $0 == new || $0 == former || $0 == known }
                if state.isNamed, known != new, known != former {
                    state.otherLinks.append(known)
                    if state.otherLinks.count > Self.otherLinksLimit { state.otherLinks.removeFirst() }
                }
            }
            state.parent = parent
            state.name = name
            state.isNamed = true
            defer { state.pinned = nil }
            return state.pinned
        }
        withExtendedLifetime(pinned) {}
    }

    /// A name is gone. If no other one is known, the descriptor keeps the inode reachable.
    func loseLink(_ parent: InodeKey, _ name: Name, keeping descriptor: SharedDescriptor?) {
        state.withLock { state in
            state.otherLinks.removeAll { $0 == Link(parent: parent, name: name) }
            guard state.isNamed, state.parent == parent, state.name == name else { return }
            if let other = state.otherLinks.popLast() {
                state.parent = other.parent
                state.name = other.name
                return
            }
            state.isNamed = false
            state.pinned = descriptor
        }
    }
}

// MARK: Opening

extension Node {
    enum Admission: Sendable {
        /// Counted: `endUse` must follow.
        case admitted(Facts)
        /// The continuation runs later.
        case waits
        /// ESTALE.
        case sentAway
        /// The whole content must be here first. Not counted.
        case needsContent(Placeholder)
    }

    /// Before a handle is opened, or a file truncated by name.
    /// - Parameters:
    ///   - discards: whether the old content is given up (O_TRUNC), so that it is not needed.
    ///   - again: runs, on any thread, when the engine is done with the inode.
    func beginUse(isWriting: Bool, discards: Bool, thread: Int32, again: @escaping @Sendable () -> Void) -> Admission {
        state.withLock { state in
            switch state.phase {
            case .free: break
            case .held:
                state.held.append(again)
                return .waits
            case .replaced:
                guard let known = state.sentAway.firstIndex(of: thread) else {
                    state.sentAway.append(thread)
                    if state.sentAway.count > 64 { state.sentAway.removeFirst() }
                    return .sentAway
                }
                state.sentAway.remove(at: known)
            }
            if isWriting, !discards, let placeholder = state.facts.placeholder { return .needsContent(placeholder) }
            state.handles += 1
            state.lastUse = Self.coarseTime()
            if isWriting { state.writers += 1 }
            return .admitted(state.facts)
        }
    }

    /// Whether this was the last writer.
    @discardableResult
    func endUse(isWriting: Bool) -> Bool {
        state.withLock { state in
            state.handles -= 1
            guard isWriting else { return false }
            state.writers -= 1
            return state.writers == 0
        }
    }

    /// After bytes were written. True if that has to be reported.
    func markDirty() -> Bool {
        state.withLock { state in
            defer { state.isDirty = true }
            return !state.isDirty
        }
    }
}

// MARK: The engine's turn

extension Node {
    /// Keeps programs out while the engine acts.
    /// - Parameter alone: whether readers hinder too.
    func beginHold(alone: Bool) -> MutationFailure? {
        state.withLock { state in
            switch state.phase {
            case .replaced: return .stale
            case .held: return .busy
            case .free: break
            }
            guard state.writers == 0, state.truncations == 0,
                !alone || state.handles == 0 && state.changes == 0
            else { return .busy }
            state.phase = .held
            return nil
        }
    }

    var isHeld: Bool { state.withLock { $0.phase == .held } }

    /// - Returns: the continuations of those that waited.
    func endHold(_ phase: Phase) -> [@Sendable () -> Void] {
        state.withLock { state in
            state.phase = phase
            defer { state.held = [] }
            return state.held
        }
    }

    /// Or somebody who is about to be one, for whom the kernel keeps the inode locked.
    var hasWriters: Bool { state.withLock { $0.writers > 0 || $0.truncations > 0 } }

    /// Before a program changes mode or times: an eviction writes down what they are, and does not go through the kernel, which would keep
    /// both apart. `endChange` must follow.
    /// - Returns: false: the continuation runs later instead, when the engine is done with the inode.
    func beginChange(again: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard state.phase != .held else {
                state.held.append(again)
                return false
            }
            state.changes += 1
            return true
        }
    }

    func endChange() { state.withLock { $0.changes -= 1 } }

    func beginTruncation() { state.withLock { $0.truncations += 1 } }
    func endTruncation() { state.withLock { $0.truncations -= 1 } }
}
