/// When bytes may travel, at so many a second: each travels at once, and the next wait until it would have taken its time.
///
/// A pause does not add up to more later, but for `burst`. (A generic cell rate algorithm, with bytes for cells.)
struct RateLimit: Sendable, Hashable {
    /// What may travel ahead of its time, so that small things are not torn apart by timers.
    static let burst = Duration.milliseconds(50)

    /// Bytes a second; `nil`: no limit.
    private(set) var rate: Int64?
    /// When all that has travelled has taken its time.
    private var busyUntil: Duration = .zero

    init(rate: Int64?) { self.rate = rate }

    /// What has travelled already counts as if it had at this rate.
    mutating func set(_ rate: Int64?) {
        self.rate = rate
        if rate == nil { busyUntil = .zero }
    }

    /// How long the next bytes have to wait.
    func wait(at now: Duration) -> Duration { max(.zero, busyUntil - now - Self.burst) }

    /// So many bytes take their place, behind all that have one already.
    /// - Returns: how long they have to wait for it.
    mutating func reserve(_ bytes: Int, at now: Duration) -> Duration {
        let wait = wait(at: now)
        note(bytes, at: now)
        return wait
    }

    /// So many bytes travel now.
    mutating func note(_ bytes: Int, at now: Duration) {
        guard let rate, rate > 0, bytes > 0 else { return }
        let (seconds, rest) = Int64(bytes).quotientAndRemainder(dividingBy: rate)
        let taken = Duration.seconds(seconds) + Duration.nanoseconds(Int64(Double(rest) / Double(rate) * 1e9))
        busyUntil = max(busyUntil, now) + taken
    }
}
