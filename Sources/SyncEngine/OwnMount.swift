import Driver
import Glibc
import Synchronization
import SystemPackage

/// Files that the service opens through its own mount, as programs do, so that the driver and everybody else have one view of them.
///
/// Every system call on them is made in threads that have descriptors of their own (`MountDoor`): who waits in the shared table for an answer
/// of the driver while the service is killed keeps the mount, and all programs that wait on it, hanging for ever.
final class OwnMount: Sendable {
    /// What writes, and waits for the disk, has a thread of its own: what only opens does not wait for it.
    enum Use: Hashable, Sendable { case fetching, writing }

    private let doors = Mutex<[Use: MountDoor]>([:])

    /// Blocks.
    /// - Parameter path: with its NUL.
    func open(_ path: [UInt8], _ flags: Int32, mode: mode_t = 0, for use: Use) -> Result<OwnMountFile, Errno> {
        let door: MountDoor
        do throws(Errno) { door = try self.door(for: use) } catch { return .failure(error) }
        let descriptor = door.run { () throws(Errno) -> Int32 in
            let raw = withText(path) { Glibc.open($0, flags | O_CLOEXEC, mode) }
            guard raw >= 0 else { throw Errno(rawValue: errno) }
            return raw
        }
        return descriptor.map { OwnMountFile(door: door, descriptor: $0) }
    }

    /// Blocks.
    /// - Parameter path: with its NUL.
    func unlink(_ path: [UInt8]) {
        guard let door = try? door(for: .writing) else { return }
        _ = door.run { _ = withText(path) { Glibc.unlink($0) } }
    }

    /// The mount must still answer.
    func end() {
        let ending = doors.withLock { doors in
            defer { doors = [:] }
            return doors
        }
        for door in ending.values { door.close() }
    }

    private func door(for use: Use) throws(Errno) -> MountDoor {
        try doors.withLock { doors throws(Errno) in
            if let door = doors[use] { return door }
            let door = MountDoor()
            try door.open()
            doors[use] = door
            return door
        }
    }
}

/// An open file of `OwnMount`. Its descriptor means nothing outside of its thread.
struct OwnMountFile: Sendable {
    fileprivate let door: MountDoor
    fileprivate let descriptor: Int32

    /// Blocks.
    func run<Value: Sendable>(_ body: @escaping @Sendable (Int32) throws(Errno) -> Value) -> Result<Value, Errno> {
        door.run { [descriptor] () throws(Errno) in try body(descriptor) }
    }

    /// Blocks until all of it is written.
    func write(_ bytes: [UInt8]) -> Errno? {
        let result = run { (descriptor) throws(Errno) in
            var offset = 0
            while offset < bytes.count {
                let written = bytes.withUnsafeBytes {
                    // An empty array is not written, so it has a base address.
                    Glibc.write(descriptor, $0.baseAddress.map { $0 + offset }, bytes.count - offset)
                }
                if written >= 0 { offset += written } else if errno != EINTR { throw Errno(rawValue: errno) }
            }
        }
        return result.failure
    }

    func synchronize() -> Errno? {
        run { (descriptor) throws(Errno) in if fsync(descriptor) != 0 { throw Errno(rawValue: errno) } }.failure
    }

    /// Does not wait.
    func close() { door.submit { [descriptor] in _ = Glibc.close(descriptor) } }
}

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}

/// - Parameter path: with its NUL.
private func withText(_ path: [UInt8], _ call: (UnsafePointer<CChar>) -> Int32) -> Int32 {
    path.withUnsafeBufferPointer { bytes in
        bytes.withMemoryRebound(to: CChar.self) { text in
            // The buffer holds at least the final NUL, so it has a base address.
            text.baseAddress.map(call) ?? -1
        }
    }
}
