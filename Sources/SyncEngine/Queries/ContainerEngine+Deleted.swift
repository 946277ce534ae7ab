import CloudClient
import EngineCore
import Logging
import Replica
package import UbiquityModel

/// What was deleted, here or elsewhere, and what is held before it is sent.
extension ContainerEngine {
    package func deleted() async throws(EngineError) -> [DeletedItem] {
        try requireOnline()
        do { return try await cloud.deleted(container.id) } catch { throw translate(error) }
    }

    /// Brings items back: each at its old place, with the folders above it if those are deleted, and a folder with what was deleted with it.
    /// - Parameter deleted: all that is deleted.
    /// - Returns: why it could not be, for those with which that was so.
    package func undelete(
        _ items: [ItemID],
        among deleted: [DeletedItem]
    ) async throws(EngineError) -> [ItemID: EngineError] {
        try requireOnline()
        var failures: [ItemID: EngineError] = [:]
        var rest = UndeletionOrder(deleted).order(items)[...]
        while !rest.isEmpty {
            let some = Array(rest.prefix(Self.undeletionsAtOnce))
            rest = rest.dropFirst(some.count)
            failures.merge(try await commitUndeletions(some)) { first, _ in first }
        }
        return failures
    }

    private static let undeletionsAtOnce = 256

    private func commitUndeletions(_ items: [ItemID]) async throws(EngineError) -> [ItemID: EngineError] {
        let operations = items.map { ItemOperation(id: .made(at: wallClock), item: $0, action: .undelete) }
        let answer = try await commit(operations)
        var failures: [ItemID: EngineError] = [:]
        var back: [RemoteItem] = []
        for (item, outcome) in zip(items, answer.outcomes) {
            switch outcome {
            case .committed(let remote): back.append(remote)
            case .noSuchItem: failures[item] = .refused("it is not known in the cloud any more")
            case .invalid(let why): failures[item] = .refused(why)
            case .quotaExceeded: failures[item] = .refused("the account's quota is used up")
            case .missingChunks, .nameTaken, .parentMissing, .notEmpty, .cycle, .superseded, .skipped:
                failures[item] = .failed("the server did not take it")
            }
        }
        try takeAnswers(back, upTo: answer.position)
        return failures
    }

    // MARK: Held deletions

    /// Sends what was held, and all else that programs have deleted by now.
    package func confirmDeletions() {
        drainChanges()
        synchronizer.confirmDeletions()
        handle(.hurried)
    }

    /// Brings back what was held, and all else that programs have deleted here and no pass has come to: this device forgets that it deleted
    /// it. What had been sent in the minute before comes back from what is deleted.
    package func undoDeletions() async throws(EngineError) {
        let sent = synchronizer.sentDeletions.map(\.item)
        do {
            let items = synchronizer.heldDeletions.union(try missingDeletions())
            var entries = items.map { DeletionLog.Entry.item($0) }
            for item in items {
                if let key = try replica.database.synced(item)?.local?.key {
                    entries.append(contentsOf: [.inode(key), .replacing(key)])
                }
            }
            try replica.database.apply(SyncedChanges(removals: Array(items)))
            populator.rowsRemoved()
            try replica.deletions.remove(entries)
            synchronizer.sentDeletions = []
            synchronizer.releaseHeld()
            synchronizer.forgetConfirmed(items)
        } catch {
            throw .failed("\(error)")
        }
        handle(.hurried)
        handle(.remoteChanged)
        guard !sent.isEmpty else { return }
        let failures: [ItemID: EngineError]
        do throws(EngineError) {
            let deleted = try await deleted()
            let known = Set(deleted.map(\.item.id))
            failures = try await undelete(sent.filter { known.contains($0) }, among: deleted)
        } catch {
            throw .failed("\(sent.count) had been sent before, and `ubiquity deleted list` has them: \(error)")
        }
        if let (_, error) = failures.first {
            throw .failed("\(failures.count) had been sent before, and `ubiquity deleted list` has them: \(error)")
        }
    }

    /// Of those of which the log says that they were deleted: where there is nothing. What a program has made there since goes on as the item.
    private func missingDeletions() throws -> Set<ItemID> {
        try synchronizer.device.itemsDeletedHere(limit: .max).filter { item in
            guard let row = try replica.database.synced(item), let folder = tracker.folderKey(of: row.place.parent)
            else { return true }
            return try observe(LocalPlace(folder: folder, name: row.place.name)) == nil
        }
    }
}

/// In which order deleted items come back, and what comes with them.
struct UndeletionOrder {
    /// What was deleted by the same device so long before its folder was deleted with it, as `rm -r` does.
    private static let together: Int64 = 10 * 60 * 1_000_000_000

    private let items: [ItemID: DeletedItem]
    private let children: [ItemID: [DeletedItem]]

    init(_ deleted: [DeletedItem]) {
        items = Dictionary(deleted.map { ($0.item.id, $0) }) { first, _ in first }
        children = Dictionary(grouping: deleted, by: \.item.place.parent)
    }

    /// Folders before what lies in them.
    func order(_ wanted: [ItemID]) -> [ItemID] {
        var order: [ItemID] = []
        var seen: Set<ItemID> = []
        for item in wanted {
            for above in path(to: item).reversed() where seen.insert(above).inserted { order.append(above) }
            var folders = [item]
            while let next = folders.popLast() {
                if seen.insert(next).inserted { order.append(next) }
                guard let folder = items[next], folder.item.content == .folder else { continue }
                folders += (children[next] ?? []).filter { goes($0, with: folder) }.map(\.item.id)
            }
        }
        return order
    }

    /// Deleted folders above it, the nearest first.
    private func path(to item: ItemID) -> [ItemID] {
        var path: [ItemID] = []
        var next = items[item]?.item.place.parent
        while let folder = next, let known = items[folder], !path.contains(folder) {
            path.append(folder)
            next = known.item.place.parent
        }
        return path
    }

    private func goes(_ item: DeletedItem, with folder: DeletedItem) -> Bool {
        let before = folder.deleted.nanoseconds.subtractingReportingOverflow(item.deleted.nanoseconds)
        return item.device == folder.device && !before.overflow && before.partialValue <= Self.together
    }
}
