import CFuse3
import Glibc

/// What tells that a file was written to: programs with a passthrough handle write without our seeing it.
struct WrittenEvidence: Sendable, Equatable {
    var size: Int64
    var modified: Moment
    var changed: Moment

    struct Moment: Sendable, Equatable {
        var seconds: Int
        var nanoseconds: Int

        init(_ time: timespec) {
            seconds = time.tv_sec
            nanoseconds = time.tv_nsec
        }
    }

    init(_ status: stat) {
        size = Int64(status.st_size)
        modified = Moment(status.st_mtim)
        changed = Moment(status.st_ctim)
    }

    /// Whether a write just before now may have left the times as they were: disks without fine times move them a tick at a time.
    func isTooFresh() -> Bool {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let age = (now.tv_sec - changed.seconds) * 1_000_000_000 + now.tv_nsec - changed.nanoseconds
        return age < 20_000_000
    }
}
