import CLinux
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// The threads on which the engine's changes go through the mount, and what each of them is doing.
///
/// There are several, since one can wait in the kernel behind a program's write. While it is in a system call on the mount such a thread
/// holds no lock of the driver.
final class Applier: Sendable {
    typealias Job = @Sendable (Acting) -> Void

    private let jobs = Mailbox<Job>()
    /// Which thread is which, from its start to its end. A leaf: memory work only.
    private let acting = Mutex<[Int32: Acting]>([:])
    private let threads = Mutex<[DriverThread]>([])
    private let doors = Mutex<[MountDoor]>([])

    /// What the handlers know of a thread of ours: nil for programs.
    func acting(_ thread: Int32) -> Acting? { acting.withLock { $0[thread] } }

    func start(count: Int, _ filesystem: Filesystem) throws(Errno) {
        for _ in 0..<count {
            let door = MountDoor()
            let mine = Acting(filesystem, door)
            try door.open { [self] id, isOpen in acting.withLock { $0[id] = isOpen ? mine : nil } }
            doors.withLock { $0.append(door) }
            let thread = try DriverThread("ubiq-apply") { [self] in run(mine) }
            threads.withLock { $0.append(thread) }
        }
    }

    /// False when the mount is ending.
    func submit(_ job: @escaping Job) -> Bool { jobs.push(job) }

    /// Finishes what was submitted. The mount must still answer.
    func stop() {
        jobs.close()
        let ending = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for thread in ending { thread.join() }
        let closing = doors.withLock { doors in
            defer { doors = [] }
            return doors
        }
        for door in closing { door.close() }
    }

    private func run(_ acting: Acting) {
        while true {
            // The way into the mount is kept open only while there is work: it would keep the mount busy.
            let job: Job
            if let next = jobs.poll() {
                job = next
            } else {
                acting.leaveMount()
                guard case .element(let next) = jobs.next() else { return }
                job = next
            }
            job(acting)
        }
    }
}

/// One apply thread: the mutation at hand, shared between the thread and the handler of its request.
final class Acting: Sendable {
    private struct State: Sendable {
        var mutation: Mutation?
        var outcome: Result<MutationResult, MutationFailure>?
        /// Of attributes, which take several steps: what to expect at the next one.
        var expected: LocalEvidence?
        var way: WayIn?
    }

    /// Opened through the mount.
    struct WayIn: Sendable {
        var root: SharedDescriptor
        var staging: SharedDescriptor
    }

    /// A leaf: memory work only.
    private let state = Mutex(State())
    /// The mutex of a thread's own object breaks no cycle: the file system outlives its threads.
    unowned let filesystem: Filesystem
    private let door: MountDoor

    init(_ filesystem: Filesystem, _ door: MountDoor) {
        self.filesystem = filesystem
        self.door = door
    }

    /// Runs system calls that become requests of this mount. Descriptors are opened and closed within, and are of no use outside.
    func inMount<Value: Sendable>(
        _ body: @escaping @Sendable () throws(Errno) -> Value
    ) throws(Errno) -> Value { try door.run(body).get() }

    var mutation: Mutation? { state.withLock { $0.mutation } }

    func begin(_ mutation: Mutation, expected: LocalEvidence? = nil) {
        state.withLock { state in
            state.mutation = mutation
            state.expected = expected
            state.outcome = nil
        }
    }

    /// What the handler decided; nil if the request never reached it.
    func end() -> Result<MutationResult, MutationFailure>? {
        state.withLock { state in
            state.mutation = nil
            defer { state.outcome = nil }
            return state.outcome
        }
    }

    var outcome: Result<MutationResult, MutationFailure>? {
        get { state.withLock { $0.outcome } }
        set { state.withLock { $0.outcome = newValue } }
    }

    var expected: LocalEvidence? {
        get { state.withLock { $0.expected } }
        set { state.withLock { $0.expected = newValue } }
    }

    /// Only to be touched within `inMount`.
    var way: WayIn? {
        get { state.withLock { $0.way } }
        set {
            let old = state.withLock { state in
                defer { state.way = newValue }
                return state.way
            }
            withExtendedLifetime(old) {}
        }
    }

    func leaveMount() {
        guard state.withLock({ $0.way != nil }) else { return }
        _ = door.run { () throws(Errno) in self.way = nil }
    }
}
