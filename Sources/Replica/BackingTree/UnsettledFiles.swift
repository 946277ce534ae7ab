internal import CLinux
internal import Synchronization
package import SystemPackage
package import UbiquityModel

/// Files that became whole, or got their name, by the engine's doing, which the disk may not have written down yet.
///
/// A program that overwrites one in place and calls `fdatasync` has nothing but its bytes written on ext4, which leaves out an attribute's
/// removal and a rename: a power loss soon after would take the file back to what it was before, and the bytes with it. So what is known
/// here is synced before a program may write.
package final class UnsettledFiles: Sendable {
    /// Something on the filesystem, open for reading.
    private let filesystem: OwnedDescriptor
    /// With more, who adds one waits for the disk. The engine syncs what it brings long before that.
    private static let most = 16_384

    private struct State {
        /// When the act on each was done, counted; `.max` before that.
        var files: [InodeKey: UInt64] = [:]
        var added: UInt64 = 0
    }

    private let state = Mutex(State())
    /// How many there are, for those who only want to know that there are none.
    private let count = Atomic<Int>(0)
    /// One at a time, held across the system call: what the disk could not write is told to one of those who ask.
    private let syncing = Mutex(())
    /// How often the disk could not be synced.
    private let failures = Atomic<Int>(0)

    init(filesystem: consuming OwnedDescriptor) { self.filesystem = filesystem }

    /// Before the engine's act. `acted` follows: a sync that begins before the act is done does not cover it.
    package func add(_ key: InodeKey) {
        let isTooMany = state.withLock { state in
            state.files[key] = .max
            count.store(state.files.count, ordering: .releasing)
            return state.files.count > Self.most
        }
        // What cannot be synced now stays, and is asked for when somebody opens it.
        if isTooMany { try? synchronize() }
    }

    /// The act is done, or has failed. What a writer has settled since needs no more.
    package func acted(_ key: InodeKey) {
        state.withLock { state in
            guard state.files[key] != nil else { return }
            state.added += 1
            state.files[key] = state.added
        }
    }

    /// Before a program may write to it.
    /// - Parameter descriptor: of the file.
    package func settle(_ key: InodeKey, _ descriptor: Int32) throws(Errno) {
        guard count.load(ordering: .acquiring) > 0, let added = state.withLock({ $0.files[key] }) else { return }
        try checked(clinux_fsync(descriptor))
        state.withLock { state in
            guard state.files[key] == added else { return }
            state.files[key] = nil
            count.store(state.files.count, ordering: .releasing)
        }
    }

    /// Everything written to the filesystem so far is durable when this returns.
    func synchronize() throws(Errno) {
        let before = state.withLock { $0.added }
        let known = failures.load(ordering: .sequentiallyConsistent)
        try syncing.withLock { _ throws(Errno) in
            do throws(Errno) { try checked(clinux_syncfs(filesystem.raw)) } catch {
                failures.add(1, ordering: .sequentiallyConsistent)
                throw error
            }
        }
        // Another one was told meanwhile: it may have been of what this one has written.
        guard failures.load(ordering: .sequentiallyConsistent) == known else { throw .ioError }
        state.withLock { state in
            if state.files.isEmpty { return }
            state.files = state.files.filter { $0.value > before }
            count.store(state.files.count, ordering: .releasing)
        }
    }
}
