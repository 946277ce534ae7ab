internal import CLinux
internal import Synchronization
package import SystemPackage
package import UbiquityModel

/// A dataless inode that is being read and filled: shared by the driver's handles and the engine's transfers.
///
/// 1. It begins with what is known to be there (nothing, or the ranges that the state database remembers).
/// 2. `write` fills it, in any order and from any thread; what is there is read with `read`.
/// 3. It ends whole (`finish`), or discarded (`truncate`, `evict`, `discard`), and never comes back from either.
package final class PlaceholderFile: Sendable {
    package let key: InodeKey
    private let file: OwnedDescriptor
    private let unsettled: UnsettledFiles?
    /// Orders writing, finishing and discarding, so that no late chunk reaches an inode that is whole or discarded.
    /// Held across system calls on this one inode, and nothing but `state` is locked under it.
    private let filling = Mutex(())
    /// From asking the disk to what follows from its answer: it tells this descriptor of a failure once, whoever asks. Held across that system
    /// call; taken under `filling`, never the other way round.
    private let syncing = Mutex(())
    /// What is there, for readers. A leaf: memory work only.
    private let state: Mutex<State>

    private struct State {
        var placeholder: Placeholder
        var present: ByteRangeSet
        var phase = Phase.filling
        /// As it was when it became whole.
        var finished: LocalState?
    }

    private enum Phase { case filling, whole, discarded }

    /// - Parameters:
    ///   - descriptor: open for reading and writing, on the backing inode.
    ///   - present: what is known to hold content already.
    ///   - unsettled: is told when the file becomes whole; programs have it open or may open it.
    package init(
        descriptor: consuming OwnedDescriptor,
        placeholder: Placeholder,
        present: ByteRangeSet = ByteRangeSet(),
        key: InodeKey,
        unsettled: UnsettledFiles? = nil
    ) {
        file = descriptor
        self.unsettled = unsettled
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
            try checked(clinux_pwrite_or_punch(file.raw, bytes.baseAddress, bytes.count, offset))
            state.withLock { $0.present.insert(offset..<offset + Int64(bytes.count)) }
        }
    }

    /// Reads what is there; the caller made sure of that. Returns 0 at the end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
        try checked(clinux_pread(file.raw, buffer.baseAddress, buffer.count, offset))
    }

    /// Makes what was filled in durable, and says what that is: only this may be remembered in the state database.
    package func synchronize() throws(Errno) -> ByteRangeSet {
        try syncing.withLock { _ throws(Errno) in
            let present = present
            do throws(Errno) { try checked(clinux_fdatasync(file.raw)) } catch {
                distrust(after: error)
                throw error
            }
            return present
        }
    }

    /// What the disk could not write it says once, and keeps the pages as if it had: nothing of what was filled in is believed any more.
    private func distrust(after error: Errno) {
        guard error == .ioError || error == .noSpace || error == .diskQuotaExceeded else { return }
        state.withLock { if $0.phase == .filling { $0.present = ByteRangeSet() } }
    }

    /// Times and mode that a program, or another device, sets while the content is not there.
    package func setAttributes(modified: Timestamp?, mode: UInt16?) throws(Errno) {
        try filling.withLock { _ throws(Errno) in
            guard state.withLock({ $0.phase == .filling }) else { throw .stale }
            let placeholder = try PlaceholderOperations.setAttributes(file.raw, modified: modified, mode: mode)
            state.withLock { $0.placeholder = placeholder }
        }
    }

    /// When all is there: fsync, modification time, mode, and last the placeholder's removal. The file is then whole. Throws ESTALE once
    /// discarded, EAGAIN while anything is missing.
    /// - Parameter isDurable: the disk was synced after it had become complete.
    /// - Returns: what it was when it became whole, also to who comes later: by then a program may have written to it, and what that made
    ///   of it would pass for what the cloud has.
    package func finish(isDurable: Bool = false) throws(Errno) -> LocalState {
        try filling.withLock { _ throws(Errno) in
            let (phase, placeholder) = state.withLock { ($0.phase, $0.placeholder) }
            switch phase {
            case .whole:
                // It could not be looked at then, and what it is now tells nothing of that.
                guard let finished = state.withLock({ $0.finished }) else { throw .ioError }
                return finished
            case .discarded: throw .stale
            case .filling:
                unsettled?.add(key)
                defer { unsettled?.acted(key) }
                try syncing.withLock { _ throws(Errno) in
                    // Another one may just have been told that the disk could not write it.
                    guard isComplete else { throw .resourceTemporarilyUnavailable }
                    do throws(Errno) {
                        try PlaceholderOperations.complete(file.raw, placeholder, isDurable: isDurable)
                    } catch {
                        distrust(after: error)
                        throw error
                    }
                }
                state.withLock { $0.phase = .whole }
            }
            let finished = try BackingTree.observe(descriptor: file.raw)
            state.withLock { $0.finished = finished }
            return finished
        }
    }

    /// O_TRUNC and truncation to nothing. It counts as discarded only when all is done, so that whoever comes meanwhile gets this
    /// object, and none is made that would write the old content into the new file. Does nothing once whole or discarded.
    package func truncate() throws(Errno) {
        try filling.withLock { _ throws(Errno) in
            guard state.withLock({ $0.phase == .filling }) else { return }
            do throws(Errno) {
                try PlaceholderOperations.truncate(file.raw)
            } catch {
                // Still a placeholder, of which nothing is sure to be there.
                let left = try? PlaceholderOperations.read(file.raw)
                state.withLock { state in
                    state.present = ByteRangeSet()
                    if let left { state.placeholder = left }
                }
                throw error
            }
            state.withLock { $0.phase = .discarded }
        }
    }

    /// Gives up what is here, for another placeholder; this object is of no use afterwards. ESTALE once whole or discarded. The caller
    /// made sure that nobody reads.
    package func evict(as placeholder: Placeholder) throws(Errno) -> LocalState {
        try filling.withLock { _ throws(Errno) in
            guard state.withLock({ $0.phase == .filling }) else { throw .stale }
            // Also after a failure: what is present is then as unknown as to anybody else.
            defer { state.withLock { $0.phase = .discarded } }
            var placeholder = placeholder
            let own = state.withLock { $0.placeholder }
            if own.revision == placeholder.revision {
                // Whoever decided this saw it a while ago: what a program has set since counts.
                (placeholder.mode, placeholder.modified) = (own.mode, own.modified)
            }
            return try PlaceholderOperations.evict(file.raw, as: placeholder)
        }
    }

    /// The inode is not, or no longer, what this object was made for: returns when nothing is going on, and later writes do nothing.
    package func discard() {
        filling.withLock { _ in
            state.withLock { if $0.phase == .filling { $0.phase = .discarded } }
        }
    }
}
