internal import UbiquityControl

/// How far an import is, in the items that were found before it began. A folder that is renamed as a whole counts, with all that is in it,
/// when that is done.
struct ImportProgress {
    private static let pause = Duration.milliseconds(100)

    private let total: Int
    private let show: @Sendable (ControlProgress) -> Void
    private var done = 0
    /// Where `done` is after the entry of the folder that is being moved.
    private var next = 0
    private var shown: ContinuousClock.Instant?

    init(total: Int, show: @escaping @Sendable (ControlProgress) -> Void) {
        self.total = total
        self.show = show
    }

    /// Begins with the next entry of the folder.
    /// - Parameter count: the items that it is.
    mutating func begin(_ count: Int) {
        done = next
        next += count
        tell()
    }

    mutating func countItem() {
        // There may be more than were found.
        if done < next { done += 1 }
        tell()
    }

    private mutating func tell() {
        let now = ContinuousClock.now
        if let shown, now - shown < Self.pause { return }
        shown = now
        show(ControlProgress("importing", done: Int64(done), total: Int64(max(total, done)), unit: .files))
    }
}
