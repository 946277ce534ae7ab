import CLinux
import Glibc
import Replica
import SystemPackage
import UbiquityModel

/// How far two changes of a file must lie apart for its times to tell both.
enum TimestampTick {
    private static let trials = 4

    /// Blocks on the disk, on which it is tried: since Linux 6.13 some filesystems give each change a time of its own if somebody has looked at
    /// the one before; the others have no more than the kernel's clock tick.
    static func measured(in staging: Staging) -> Duration {
        isFine(staging) ? .zero : clockTick
    }

    private static func isFine(_ staging: Staging) -> Bool {
        guard let file = try? staging.makeFile() else { return false }
        let name = file.name
        defer { try? staging.remove(name) }
        let descriptor = file.takeDescriptor()
        var last: Timestamp?
        for trial in 0..<trials {
            guard (try? write(UInt8(trial), descriptor.raw)) != nil,
                let changed = try? BackingTree.observe(descriptor: descriptor.raw).changed, changed != last
            else { return false }
            last = changed
        }
        return true
    }

    private static func write(_ byte: UInt8, _ descriptor: Int32) throws(Errno) {
        var byte = byte
        try checked(clinux_pwrite_or_punch(descriptor, &byte, 1, 0))
    }

    private static let clockTick: Duration = {
        var tick = timespec()
        guard clock_getres(CLOCK_REALTIME_COARSE, &tick) == 0 else { return .milliseconds(10) }
        return .seconds(tick.tv_sec) + .nanoseconds(tick.tv_nsec)
    }()
}
