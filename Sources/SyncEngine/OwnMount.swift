import Driver
import Glibc
import Synchronization
import SystemPackage

/// Files that the service opens through its own mount, as programs do, so that the driver and everybody else have one view of them.
///
/// Every system call on them is made in a thread that has descriptors of its own (`MountDoor`): who waits in the shared table for an answer
/// of the driver while the service is killed keeps the mount, and all programs that wait on it, hanging for ever.
final class OwnMount: Sendable {
    private let door = Mutex<MountDoor?>(nil)

    /// Blocks.
    /// - Parameter path: with its NUL.
    func open(_ path: [UInt8], _ flags: Int32) -> Result<OwnMountFile, Errno> {
        let door: MountDoor
        do throws(Errno) { door = try openedDoor() } catch { return .failure(error) }
        let descriptor = door.run { () throws(Errno) -> Int32 in
            let raw = path.withUnsafeBufferPointer { bytes in
                bytes.withMemoryRebound(to: CChar.self) { text in
                    // The buffer holds at least the final NUL, so it has a base address.
                    text.baseAddress.map { Glibc.open($0, flags | O_CLOEXEC) } ?? -1
                }
            }
            guard raw >= 0 else { throw Errno(rawValue: errno) }
            return raw
        }
        return descriptor.map { OwnMountFile(door: door, descriptor: $0) }
    }

    /// The mount must still answer.
    func end() {
        let ending = door.withLock { door in
            defer { door = nil }
            return door
        }
        ending?.close()
    }

    private func openedDoor() throws(Errno) -> MountDoor {
        try door.withLock { known throws(Errno) in
            if let known { return known }
            let door = MountDoor()
            try door.open()
            known = door
            return door
        }
    }
}

/// An open file of `OwnMount`. Its descriptor means nothing outside of its thread.
struct OwnMountFile: Sendable {
    fileprivate let door: MountDoor
    fileprivate let descriptor: Int32

    /// Does not wait.
    func close() { door.submit { [descriptor] in _ = Glibc.close(descriptor) } }
}
