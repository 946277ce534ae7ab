import CLinux
import Glibc
import Replica
import SystemPackage
import UbiquityModel

/// A folder of the test's own on a disk (not a memory filesystem: blocks and handles are looked at), removed at the
/// end.
final class ScratchFolder: Sendable {
    private static let parent = "/var/tmp"
    let path: String

    init() throws {
        path = Self.parent + "/ubiquity-test-\(RevisionID.random())"
        guard mkdir(path, 0o700) == 0 else { throw Errno(rawValue: errno) }
    }

    /// Through descriptors: a test may leave paths that are longer than a path may be.
    deinit { try? Staging(path: Self.parent).remove(String(path.dropFirst(Self.parent.count + 1))) }

    func appending(_ name: String) -> String { path + "/" + name }

    func openFolder() throws -> OwnedDescriptor { try open(path, O_RDONLY | O_DIRECTORY) }

    func open(_ path: String, _ flags: Int32 = O_RDWR) throws -> OwnedDescriptor {
        try OwnedDescriptor(in: AT_FDCWD, path, flags: flags)
    }

    @discardableResult
    func write(_ name: String, _ content: [UInt8] = [], mode: mode_t = 0o644) throws -> OwnedDescriptor {
        let file = try OwnedDescriptor(in: AT_FDCWD, appending(name), flags: O_RDWR | O_CREAT | O_TRUNC, mode: 0o600)
        let result = content.withUnsafeBytes { clinux_pwrite_all(file.raw, $0.baseAddress, $0.count, 0) }
        guard result == 0, fchmod(file.raw, mode) == 0 else { throw Errno(rawValue: -result) }
        return file
    }
}

func name(_ text: String) throws -> Name { try Name(text) }

/// All of a file, through any readable descriptor.
func content(_ descriptor: Int32) throws -> [UInt8] {
    var status = clinux_status()
    guard clinux_status_of(descriptor, &status) == 0 else { throw Errno.badFileDescriptor }
    var result = [UInt8](repeating: 0, count: Int(status.size))
    let count = result.withUnsafeMutableBytes { clinux_pread(descriptor, $0.baseAddress, $0.count, 0) }
    guard count == status.size else { throw Errno.ioError }
    return result
}

/// 512-byte blocks on the disk.
func blocks(_ descriptor: Int32) -> Int64 {
    var status = clinux_status()
    return clinux_status_of(descriptor, &status) == 0 ? status.blocks : -1
}

/// SplitMix64: the same numbers for the same seed, everywhere.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}

let someTime = Timestamp(nanoseconds: 1_600_000_000_123_456_789)

func somePlaceholder(size: Int64, mode: UInt16 = 0o644) -> Placeholder {
    Placeholder(revision: RevisionID(high: 1, low: 2), generation: 7, size: size, modified: someTime, mode: mode)
}
