internal import Glibc
internal import UbiquityModel

/// The system's clock.
enum Clock {
    @Sendable static func now() -> Timestamp {
        var time = timespec()
        // CLOCK_REALTIME with a valid pointer: the call has no way to fail.
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
    }
}
