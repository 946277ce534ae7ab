import Testing

/// Everything here works on real mounts, one after the other.
@Suite(.serialized, Requirements.fuse, .timeLimit(.minutes(10)))
struct DriverTests {}
