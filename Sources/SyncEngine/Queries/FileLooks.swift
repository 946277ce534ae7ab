import Glibc
import Replica
import UbiquityModel

/// What a file has besides its bytes, for one that is made anew of them.
struct FileLooks: Sendable {
    private var mode: mode_t = 0o644
    private var modified: timespec?
    private var extended: [[UInt8]: [UInt8]] = [:]

    /// A version has a time of its own; the rest is the item's.
    init(_ version: ItemVersion, of item: RemoteItem?) {
        let parts = version.modified.parts
        modified = timespec(tv_sec: Int(parts.seconds), tv_nsec: Int(parts.nanoseconds))
        guard let item else { return }
        mode = mode_t(item.attributes.mode)
        extended = item.attributes.extended
    }

    /// Those of an open file.
    init(of descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return }
        mode = status.st_mode & 0o777
        modified = status.st_mtim
    }

    /// As far as that goes: the bytes are what matters, and they stay without it.
    func apply(to descriptor: Int32) {
        for (name, value) in extended {
            (name + [0]).withUnsafeBufferPointer { bytes in
                bytes.withMemoryRebound(to: CChar.self) { name in
                    // The buffer holds at least the final NUL, so it has a base address.
                    if let name = name.baseAddress { try? ExtendedAttributes.set(descriptor, name, value) }
                }
            }
        }
        _ = fchmod(descriptor, mode)
        guard let modified else { return }
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        _ = futimens(descriptor, [now, modified])
    }
}
