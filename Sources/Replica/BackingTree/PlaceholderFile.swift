internal import CLinux
internal import Synchronization
package import SystemPackage
package import UbiquityModel

/// A dataless inode that is being read and filled: shared by the driver's handles and the engine's transfers.
///
/// 1. It begins with what is known to be there (nothing, or the ranges that the state database remembers).
/// 2. `write` fills it, in any order and from any thread; what is there is read with `read`.
/// 3. It ends whole (`finish`), or discarded (`discard`: truncated, replaced), and never comes back from either.
package final class PlaceholderFile: Sendable {
    package let key: InodeKey
    private let file: OwnedDescriptor
    /// Orders writing, finishing and discarding, so that no late chunk reaches an inode that is whole or discarded.
    /// Held across system calls on this one inode, and nothing but `state` is locked under it.
    private let filling = Mutex(())
    /// What is there, for readers. A leaf: memory work only.
    private let state: Mutex<State>

    private struct State {
        var placeholder: Placeholder
        var present: ByteRangeSet
        var phase = Phase.filling
    }

    private enum Phase { case filling, whole, discarded }

    /// - Parameters:
    ///   - descriptor: open for reading and writing, on the backing inode.
    ///   - present: what is known to hold content already.
    package init(
        descriptor: consuming OwnedDescriptor,
        placeholder: Placeholder,
        present: ByteRangeSet = ByteRangeSet(),
        key: InodeKey
    ) {
        file = descriptor
        self.key = key
        state = Mutex(State(placeholder: placeholder, present: present))
    }

    /// For reading what is present, as long as this object lives.
    package var descriptor: Int32 { file.raw }
    package var placeholder: Placeholder { state.withLock { $0.placeholder } }
    package var present: ByteRangeSet { state.withLock { $0.present } }
    package var isWhole: Bool { state.withLock { $0.phase == .whole } }
    package var isDiscarded: Bool { state.withLock { $0.phase == .discarded } }
    /// Whether every byte is there, finished or not.
    package var isComplete: Bool { contains(0..<Int64.max) }

    /// What of the range, as far as it lies in the file, is not there. From memory.
    package func missing(in range: Range<Int64>) -> [Range<Int64>] {
        state.withLock { state in
            guard state.phase == .filling else { return [] }
            return state.present.missing(in: range.clamped(to: 0..<state.placeholder.size))
        }
    }

    /// Whether all of the range, as far as it lies in the file, is there.
    package func contains(_ range: Range<Int64>) -> Bool {
        state.withLock { $0.phase == .whole || $0.present.contains(range.clamped(to: 0..<$0.placeholder.size)) }
    }

    /// Fills in verified content. Does nothing once the file is whole or discarded.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) {
        try filling.withLock { _ throws(Errno) in
            let (phase, size) = state.withLock { ($0.phase, $0.placeholder.size) }
            guard phase == .filling else { return }
            guard offset >= 0, offset <= size, Int64(bytes.count) <= size - offset else { throw .invalidArgument }
            try checked(clinux_pwrite_all(file.raw, bytes.baseAddress, bytes.count, offset))
            state.withLock { $0.present.insert(offset..<offset + Int64(bytes.count)) }
        }
    }

    /// Reads what is there; the caller made sure of that. Returns 0 at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        try checked(clinux_pread(file.raw, buffer.baseAddress, buffer.count, offset))
    }

    /// Makes what was filled in durable, and says what that is: only this may be remembered in the state database.
    package func synchronize() throws(Errno) -> ByteRangeSet {
        let present = present
        try checked(clinux_fdatasync(file.raw))
        return present
    }

    /// Times and mode that a program, or another device, sets while the content is not there.
    package func setAttributes(modified: Timestamp?, mode: UInt16?) throws(Errno) {
        try filling.withLock { _ throws(Errno) in
            guard state.withLock({ $0.phase == .filling }) else { throw .stale }
            let placeholder = try PlaceholderOperations.setAttributes(file.raw, modified: modified, mode: mode)
            state.withLock { $0.placeholder = placeholder }
        }
    }

    /// When all is there: fsync, modification time, mode, and last the placeholder's removal. The file is then whole;
    /// again, it is just looked at. Throws ESTALE once discarded, EAGAIN while anything is missing.
    package func finish() throws(Errno) -> LocalState {
        try filling.withLock { _ throws(Errno) in
            let (phase, placeholder) = state.withLock { ($0.phase, $0.placeholder) }
            switch phase {
            case .whole: break
            case .discarded: throw .stale
            case .filling:
                guard isComplete else { throw .resourceTemporarilyUnavailable }
                try PlaceholderOperations.complete(file.raw, placeholder)
                state.withLock { $0.phase = .whole }
            }
            return try BackingTree.observe(descriptor: file.raw)
        }
    }

    /// The content is no longer wanted in this inode (O_TRUNC, replacement): returns when no write is going on, and
    /// later ones do nothing.
    package func discard() {
        filling.withLock { _ in
            state.withLock { if $0.phase == .filling { $0.phase = .discarded } }
        }
    }
}
