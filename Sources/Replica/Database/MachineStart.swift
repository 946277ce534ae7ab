internal import SystemPackage

/// Since when the machine runs: another id after each start, and on each machine.
enum MachineStart {
    /// `nil` where the kernel does not tell: then nothing of before is relied on.
    static let id: String? = {
        guard let file = try? FileDescriptor.open("/proc/sys/kernel/random/boot_id", .readOnly) else { return nil }
        defer { try? file.close() }
        var bytes = [UInt8](repeating: 0, count: 64)
        guard let count = try? bytes.withUnsafeMutableBytes({ try file.read(into: $0) }), count >= 36 else {
            return nil
        }
        return String(decoding: bytes.prefix(36), as: UTF8.self)
    }()
}
