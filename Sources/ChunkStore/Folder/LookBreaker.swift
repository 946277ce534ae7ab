internal import Synchronization

/// Looks at a disk from where others wait meanwhile: from within the catalogue's transactions.
///
/// A disk that is dying takes ten seconds to say that it cannot read something. After a look that took long nobody looks for a hundred
/// times as long; until then the answer is no, which costs an upload, and loses nothing.
final class LookBreaker: Sendable {
    /// What a slow disk that is busy needs for one record, and more.
    private static let longest: Duration = .milliseconds(100)
    private static let factor = 100

    private let now: @Sendable () -> ContinuousClock.Instant
    /// Until when nobody looks. A leaf: nothing is called under it.
    private let closed = Mutex<ContinuousClock.Instant?>(nil)

    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) { self.now = now }

    /// What `body` says; `false`, without asking it, while nobody looks.
    func look(_ body: () -> Bool) -> Bool {
        let start = now()
        let isClosed = closed.withLock { until in until.map { start < $0 } ?? false }
        guard !isClosed else { return false }
        let answer = body()
        let end = now()
        let took = start.duration(to: end)
        if took > Self.longest { closed.withLock { $0 = end.advanced(by: took * Self.factor) } }
        return answer
    }
}
