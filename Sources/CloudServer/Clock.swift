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

/// Bytes from the system's generator, for tokens, nonces, keys and codes.
enum RandomBytes {
    static func make(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}
