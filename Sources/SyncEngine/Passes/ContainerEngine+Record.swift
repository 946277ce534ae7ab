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

    func record(_ pass: Pass) async throws {
        guard !pass.changes.isEmpty || !pass.answered.isEmpty else { return }
        let replica = replica
        let (written, folders) = (pass.written, pass.foldersTouched)
        let times = folderTimes(folders, pass)
        let (changes, answered, manifests) = (pass.changes, pass.answered, pass.manifests)
        let deletions = pass.committedDeletions
        let durable = try await BlockingPool.shared.run { () -> Bool in
            for (folder, time) in times { try? Self.setFolderTime(folder, time, replica) }
            let durable = Self.makeDurable(written, folders, replica)
            if durable {
                try replica.database.apply(changes, remote: answered, manifests: manifests)
                try replica.deletions.remove(deletions.map { .item($0) })
            } else {
                try replica.database.apply(SyncedChanges(), remote: answered, manifests: manifests)
            }
            return durable
        }
        if durable { try correctFilled(changes.upserts) }
        for (folder, _) in times { mount?.itemStateChanged(folder) }
        guard durable else { throw EngineError.failed("what was synced is not recorded: the disk does not write") }
        if !answered.isEmpty || !changes.removals.isEmpty { handle(.remoteChanged) }
    }

    /// After a lost connection: what was committed before stays committed.
    func recordWhatWasDone(_ pass: Pass) async {
        do { try await record(pass) } catch {
            logger.error("what was synced is not recorded", metadata: ["why": "\(error)"])
        }
    }

    private static func makeDurable(_ written: [LocalPlace], _ folders: Set<InodeKey>, _ replica: Replica) -> Bool {
        do throws(Errno) {
            if written.count + folders.count > fewFiles {
                try replica.tree.synchronize()
                return true
            }
            var parents = folders
            for place in written {
                parents.insert(place.folder)
                guard let folder = try? replica.tree.openFolder(key: place.folder) else { continue }
                // A file that was replaced meanwhile has its own mark and is looked at again.
                let raw = folder.withName(place.name) { openat($0, $1, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
                guard raw >= 0 else {
                    let error = Errno(rawValue: errno)
                    // Gone, a symlink, a socket: nothing of it is written as data.
                    if [.noSuchFileOrDirectory, .tooManySymbolicLinkLevels, .noSuchAddressOrDevice].contains(error) {
                        continue
                    }
                    // By another way, then.
                    try replica.tree.synchronize()
                    return true
                }
                let file = OwnedDescriptor(raw)
                try synchronizeFile(file.raw)
            }
            for key in parents {
                guard let folder = try? replica.tree.openFolder(key: key) else { continue }
                try checked(clinux_fsync(folder.raw))
            }
            return true
        } catch {
            return false
        }
    }

    /// - Note: What can have no data on a disk (a pipe took the name meanwhile) has nothing to synchronise.
    private static func synchronizeFile(_ descriptor: Int32) throws(Errno) {
        do throws(Errno) { try checked(clinux_fsync(descriptor)) } catch {
            if error != .invalidArgument { throw error }
        }
    }

    /// Folders keep the time that they were given; that the engine changed their entries is no change of theirs.
    private func folderTimes(_ folders: Set<InodeKey>, _ pass: Pass) -> [(InodeKey, Timestamp)] {
        var fresh: [InodeKey: Timestamp] = [:]
        for row in pass.changes.upserts where row.content == .folder {
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

extension OwnedDescriptor {
    fileprivate borrowing func withName(_ name: Name, _ body: (Int32, UnsafePointer<CChar>) -> Int32) -> Int32 {
        let raw = raw
        return name.withCString { body(raw, $0) }
    }
}
