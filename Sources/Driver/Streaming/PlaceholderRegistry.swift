import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// The one object of each dataless inode that is in use: all handles, and through the host the engine, fill and read the same.
final class PlaceholderRegistry: Sendable {
    private struct Reference: Sendable {
        weak let file: PlaceholderFile?
    }

    private struct State: Sendable {
        var references: [InodeKey: Reference] = [:]
        var sweepAt = 64
    }

    /// A leaf: memory work only.
    private let state = Mutex(State())

    /// The object in use, if there is one that still is of use: a whole or discarded one belongs to the inode's past.
    func file(_ key: InodeKey) -> PlaceholderFile? {
        state.withLock { $0.references[key]?.file }.flatMap { $0.isDiscarded || $0.isWhole ? nil : $0 }
    }

    /// `make` runs without a lock; if two make one at once, one of them wins for both.
    func file(_ key: InodeKey, make: () throws(Errno) -> PlaceholderFile) throws(Errno) -> PlaceholderFile {
        if let known = file(key) { return known }
        let made = try make()
        return state.withLock { state in
            if let known = state.references[key]?.file, !known.isDiscarded, !known.isWhole { return known }
            state.references[key] = Reference(file: made)
            if state.references.count > state.sweepAt {
                state.references = state.references.filter { $0.value.file != nil }
                state.sweepAt = max(64, state.references.count * 2)
            }
            return made
        }
    }
}
