import CLinux
import Driver
import EngineCore
import Glibc
import Logging
import Replica
import SystemPackage
import UbiquityModel

/// Writing down what a pass achieved. A row of the synced tree is written only after the inode that it describes, with its data
/// and its name, is durable; a lost row is harmless, since equal content is agreement (architecture section 4, "Order").
extension ContainerEngine {
    /// From this many files on, one sync of the filesystem is cheaper than one a file.
    private static let fewFiles = 16

    /// - Returns: an error as a value. Thrown, it would reach the pass on the thread where it arose, and the pass would go on there
    ///   (Swift 6.3, optimised; `DiskFaultTests`).
    func recorded(_ record: PassRecord) async -> Result<Void, any Error> {
        do {
            try await self.record(record)
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    private func record(_ record: PassRecord) async throws {
        await recordingBesideEnds()
        var (now, beside) = try split(record)
        guard !beside.isEmpty else { return try await write(record) }
        let replica = replica
        let isDurable = try await BlockingPool.shared.run {
            Self.makeDurable(record.written, [], record.changes, replica)
        }
        guard isDurable else { throw Self.unwritten }
        now.written = []
        try await write(now)
        writeBeside(beside, record.written)
    }

    private static var unwritten: EngineError { .failed("what was synced is not recorded: the disk does not write") }

    private func write(_ record: PassRecord) async throws {
        let replica = replica
        let times = folderTimes(record)
        let changes = record.changes
        let recorded = Set(changes.upserts.map(\.id))
        // Before the row says so: else nobody would do it after a crash.
        for row in changes.upserts where row.content.kind == .package {
            let remote = try record.answered.last { $0.id == row.id } ?? replica.database.remote(row.id)
            await referToNewRevision(row, remote)
        }
        let arriving = try prepareForChanges(record.answered.filter { !recorded.contains($0.id) })
        let answered = answeredPosition
        let durable = try await BlockingPool.shared.run { () -> Bool in
            for (folder, time) in times { try? Self.setFolderTime(folder, time, replica) }
            let durable = Self.makeDurable(record.written, record.folders, changes, replica)
            if durable {
                try replica.database.apply(
                    changes,
                    remote: record.answered,
                    answered: answered,
                    manifests: record.manifests
                )
                // The rows are written. One that stays in the log proves what has been done already.
                try? replica.deletions.remove(record.deletions.map { .item($0) })
            } else {
                try replica.database.apply(
                    SyncedChanges(),
                    remote: record.answered,
                    answered: answered,
                    manifests: record.manifests
                )
            }
            return durable
        }
        // Not before: the next connection may come meanwhile, and asks for it.
        answeredPosition = nil
        if durable {
            if !changes.removals.isEmpty {
                let written = Set(changes.upserts.map(\.id))
                populator.rowsRemoved(of: changes.removals.filter { !written.contains($0) })
            }
            try correctFilled(changes.upserts)
            try populateAdopted(changes.upserts)
        }
        for (folder, _) in times { mount?.itemStateChanged(folder) }
        guard durable else { throw Self.unwritten }
        recordingBeside.isTroubled = false
        noteArrived(arriving)
        fetchAppeared(changes.upserts)
        contentWatch.grew()
        if !changes.removals.isEmpty { roomMade() }
    }

    /// As a record is made durable before it is written.
    func makeDurable(_ places: [LocalPlace], _ folders: Set<InodeKey>) async -> Bool {
        let replica = replica
        return await withCheckedContinuation { continuation in
            BlockingPool.shared.submit {
                continuation.resume(returning: Self.makeDurable(places, folders, SyncedChanges(), replica))
            }
        }
    }

    private static func makeDurable(
        _ written: [LocalPlace],
        _ folders: Set<InodeKey>,
        _ changes: SyncedChanges,
        _ replica: Replica
    ) -> Bool {
        // Of packages, all that lies in them.
        let hasPackages = changes.upserts.contains { $0.content.kind == .package }
        do throws(Errno) {
            guard !hasPackages, written.count + folders.count <= fewFiles,
                let opened = open(written, folders.union(written.map(\.folder)), replica)
            else {
                try replica.tree.synchronize()
                return true
            }
            for file in opened { try synchronizeFile(file.descriptor) }
            return true
        } catch {
            return false
        }
    }

    /// What is still there of these files and folders; `nil` if one of them is there and cannot be opened: too many are open, say.
    private static func open(
        _ written: [LocalPlace],
        _ folders: Set<InodeKey>,
        _ replica: Replica
    ) -> [OwnedFile]? {
        do throws(Errno) {
            var opened: [OwnedFile] = []
            for place in written {
                try whereItIsThere { () throws(Errno) in
                    let folder = try replica.tree.openFolder(key: place.folder)
                    // A file that was replaced meanwhile has its own mark and is looked at again.
                    opened.append(OwnedFile(try replica.tree.openAny(in: folder.raw, place.name)))
                }
            }
            for key in folders {
                try whereItIsThere { () throws(Errno) in
                    opened.append(OwnedFile(try replica.tree.openFolder(key: key)))
                }
            }
            return opened
        } catch {
            return nil
        }
    }

    /// Gone, a symlink, a socket: nothing of it is written as data.
    private static func whereItIsThere(_ body: () throws(Errno) -> Void) throws(Errno) {
        do throws(Errno) { try body() } catch {
            let gone: [Errno] = [
                .noSuchFileOrDirectory, .stale, .tooManySymbolicLinkLevels, .noSuchAddressOrDevice,
            ]
            if !gone.contains(error) { throw error }
        }
    }

    /// - Note: What can have no data on a disk (a pipe took the name meanwhile) has nothing to synchronise.
    private static func synchronizeFile(_ descriptor: Int32) throws(Errno) {
        do throws(Errno) { try checked(clinux_fsync(descriptor)) } catch {
            if error != .invalidArgument { throw error }
        }
    }

    /// Folders keep the time that they were given; that the engine changed their entries is no change of theirs.
    private func folderTimes(_ record: PassRecord) -> [(InodeKey, Timestamp)] {
        let folders = record.folders
        var fresh: [InodeKey: Timestamp] = [:]
        for row in record.changes.upserts where row.content == .folder {
            if let key = row.local?.key { fresh[key] = row.attributes.modified }
        }
        return folders.union(fresh.keys).compactMap { key in
            guard key != replica.tree.rootKey else { return nil }
            if let time = fresh[key] { return folders.contains(key) ? (key, time) : nil }
            let row = (try? replica.database.synced(key: key))?.first { $0.content == .folder }
            return row.map { (key, $0.attributes.modified) }
        }
    }

    private static func setFolderTime(_ key: InodeKey, _ time: Timestamp, _ replica: Replica) throws(Errno) {
        let folder = try replica.tree.openFolder(key: key)
        try setModified(folder.raw, time)
    }
}
