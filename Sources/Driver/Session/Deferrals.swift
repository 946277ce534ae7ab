import CFuse3
import Glibc
import Synchronization
import SystemPackage

/// The requests that wait for the host, and who may answer them.
///
/// 1. `wait` registers a request and asks the host.
/// 2. The host's completion, an interrupt or the end of the mount claims it: the first one has the only right to go on.
/// 3. Whoever claimed it runs its continuation on the worker; that answers the request.
///
/// An interrupt finds its request by number, never by address, so a late one meets nothing.
final class Deferrals: Sendable {
    private struct Waiting: Sendable {
        let request: Request
        var token: ContentRequest?
        let fail: @Sendable (Errno) -> Void
        /// Until then only `wait` may use the request: an end that comes first is left for it in `early`.
        var isArmed = false
        var early: Errno?
    }

    private struct State: Sendable {
        var next: UInt64 = 1
        var waiting: [UInt64: Waiting] = [:]
        var isClosed = false
        /// Nobody waits for now: EAGAIN, as for O_NONBLOCK.
        var isImpatient = false
    }

    /// A leaf: memory work only. Never held while libfuse or the host is called.
    private let state = Mutex(State())
    private let worker: Worker
    let interrupted = Mailbox<UInt64>()

    init(worker: Worker) { self.worker = worker }

    /// Asks the host, and goes on with its answer, with EINTR, or with ENOTCONN at the end of the mount.
    /// - Parameters:
    ///   - begin: asks; the completion that it gets may be called on any thread, also at once. `nil`: there is nothing to wait for.
    ///   - resume: answers the request; runs exactly once.
    func wait<Value: Sendable>(
        _ request: Request,
        begin: (@escaping @Sendable (Result<Value, Errno>) -> Void) -> ContentRequest?,
        nothing: Value,
        resume: @escaping @Sendable (Result<Value, Errno>) -> Void
    ) {
        let number: UInt64? = state.withLock { state in
            guard !state.isClosed else { return nil }
            state.next += 1
            state.waiting[state.next] = Waiting(request: request, token: nil) { resume(.failure($0)) }
            return state.next
        }
        guard let number else { return resume(.failure(.notConnected)) }
        // May call `requestWasInterrupted` at once, if the interrupt was faster.
        fuse_req_interrupt_func(request.raw, requestWasInterrupted, UnsafeMutableRawPointer(bitPattern: UInt(number)))
        let early: Errno? = state.withLock { state in
            state.waiting[number]?.isArmed = true
            guard let early = state.waiting[number]?.early else { return nil }
            state.waiting[number] = nil
            return early
        }
        if let early {
            Self.disarm(request)
            return resume(.failure(early))
        }
        let token = begin { [self] result in
            guard claim(number) != nil else { return }
            worker.run {
                Self.disarm(request)
                resume(result)
            }
        }
        guard let token else {
            if claim(number) != nil {
                Self.disarm(request)
                resume(.success(nothing))
            }
            return
        }
        let (isWaiting, isImpatient) = state.withLock { state in
            guard state.waiting[number] != nil else { return (false, false) }
            state.waiting[number]?.token = token
            return (true, state.isImpatient)
        }
        if !isWaiting { token.cancel() } else if isImpatient { end(number, .wouldBlock) }
    }

    /// Who waits, if the request still does.
    func thread(of number: UInt64) -> Int32? { state.withLock { $0.waiting[number]?.request.thread } }

    /// Ends one wait with an error, if it still goes on.
    func end(_ number: UInt64, _ error: Errno) {
        let claimed: Waiting? = state.withLock { state in
            guard state.waiting[number]?.isArmed == true else {
                state.waiting[number]?.early = error
                return nil
            }
            return state.waiting.removeValue(forKey: number)
        }
        guard let waiting = claimed else { return }
        waiting.token?.cancel()
        worker.run {
            Self.disarm(waiting.request)
            waiting.fail(error)
        }
    }

    /// Ends all waits of this moment.
    func endAll(_ error: Errno) {
        for number in state.withLock({ $0.waiting.keys.sorted() }) { end(number, error) }
    }

    /// Ends all waits of this moment with EINTR. Those that follow, until this is taken back, end at once with EAGAIN: most programs ask
    /// again after EINTR, and would do nothing else.
    func setImpatient(_ isImpatient: Bool) {
        state.withLock { $0.isImpatient = isImpatient }
        if isImpatient { endAll(.interrupted) }
    }

    /// Ends all waits; later ones end at once.
    func close() {
        state.withLock { $0.isClosed = true }
        endAll(.notConnected)
    }

    private func claim(_ number: UInt64) -> Waiting? { state.withLock { $0.waiting.removeValue(forKey: number) } }

    /// Returns when no interrupt function of this request runs or will run. Not to be called from one.
    private static func disarm(_ request: Request) { fuse_req_interrupt_func(request.raw, nil, nil) }
}

/// libfuse calls this with the request's lock held: it only passes the number on.
private func requestWasInterrupted(request: fuse_req_t?, number: UnsafeMutableRawPointer?) {
    guard let request, let number, let context = fuse_req_userdata(request) else { return }
    // The session's object outlives all its requests (Session.run).
    let filesystem = Unmanaged<Filesystem>.fromOpaque(context).takeUnretainedValue()
    filesystem.deferrals.interrupted.push(UInt64(UInt(bitPattern: number)))
}
