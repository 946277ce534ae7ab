import Glibc

/// The nanoseconds that `body` takes.
@inline(__always)
func elapsed(_ body: () throws(SystemError) -> Void) throws(SystemError) -> UInt64 {
    let start = now()
    try body()
    return now() - start
}

/// Nanoseconds on the monotonic clock.
@inline(__always)
private func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
