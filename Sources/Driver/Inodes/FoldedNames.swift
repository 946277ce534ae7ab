import CFuse3
import CLinux
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// The names in the folders that programs have lately written to, by what they are without their case.
///
/// 1. A folder is listed when a program is about to give it a name.
/// 2. From then on its names are noted as they come and go through the mount, and as the engine tells of them.
/// 3. When others were written to since, it is forgotten, and listed again when it is needed.
///
/// Of names that are gone some may be left, which the disk is asked about; of those that are there none may be missing.
final class FoldedNames: Sendable {
    private struct Folder: Sendable {
        /// Tells this listing of the folder from one that was begun after it was forgotten.
        let serial: UInt64
        var lastUse: UInt64
        /// Before it is, there are only the names that came meanwhile.
        var isListed = false
        /// Several to one: what came behind our back, some of which may be gone.
        var names: [FoldedName: [Name]] = [:]
    }

    private struct State: Sendable {
        var folders: [InodeKey: Folder] = [:]
        /// In all of them.
        var nameCount = 0
        /// Of looks, as the time of `lastUse`.
        var clock: UInt64 = 0

        /// Nothing if the folder is not known.
        mutating func change(_ folder: InodeKey, _ body: (inout Folder) -> Void) {
            guard let known = folders.index(forKey: folder) else { return }
            nameCount -= folders.values[known].names.count
            body(&folders.values[known])
            nameCount += folders.values[known].names.count
        }

        mutating func remove(_ folder: InodeKey) -> Folder? {
            guard let removed = folders.removeValue(forKey: folder) else { return nil }
            nameCount -= removed.names.count
            return removed
        }
    }

    /// A leaf: memory work only. Folders are listed, and what is forgotten is freed, without it.
    private let state = Mutex(State())
    private let folderLimit: Int
    /// The folder in use may pass it alone: to list that each time would take longer than anything.
    private let nameLimit: Int

    /// A name takes some 200 bytes.
    init(folderLimit: Int = 512, nameLimit: Int = 250_000) {
        self.folderLimit = folderLimit
        self.nameLimit = nameLimit
    }

    var folderCount: Int { state.withLock { $0.folders.count } }

    /// Another name in a folder that is equal to this one without its case; nil also if this one is there itself, and so is no new one.
    /// - Parameters:
    ///   - descriptor: of the folder in the backing tree.
    ///   - leaving: a name that goes when this one comes.
    func twin(
        of name: Name,
        in folder: InodeKey,
        _ descriptor: SharedDescriptor,
        leaving: Name? = nil
    ) throws(Errno) -> Name? {
        let others = try names(name.folded, in: folder, descriptor).filter { $0 != name && $0 != leaving }
        guard !others.isEmpty, try !Self.exists(name, in: descriptor) else { return nil }
        for other in others {
            if try Self.exists(other, in: descriptor) { return other }
        }
        return nil
    }

    /// A name is there, or is about to be.
    func came(_ name: Name, in folder: InodeKey) {
        let folded = name.folded
        let forgotten = state.withLock { state in
            state.change(folder) { $0.names.note(name, folded) }
            return trim(&state)
        }
        withExtendedLifetime(forgotten) {}
    }

    func went(_ name: Name, from folder: InodeKey) {
        let folded = name.folded
        state.withLock { state in
            state.change(folder) { folder in
                folder.names[folded]?.removeAll { $0 == name }
                if folder.names[folded]?.isEmpty == true { folder.names[folded] = nil }
            }
        }
    }

    /// A folder is gone.
    func forget(_ folder: InodeKey) {
        let forgotten = state.withLock { $0.remove(folder) }
        withExtendedLifetime(forgotten) {}
    }

    /// Whether there is such a name in a folder of the backing tree.
    static func exists(_ name: Name, in folder: SharedDescriptor) throws(Errno) -> Bool {
        do throws(Errno) {
            var status = stat()
            _ = try name.withCString { name throws(Errno) in
                try called(fstatat(folder.raw, name, &status, AT_SYMLINK_NOFOLLOW))
            }
            return true
        } catch .noSuchFileOrDirectory {
            return false
        }
    }

    // MARK: Listing

    private enum Look {
        case known([Name])
        case unlisted(serial: UInt64)
    }

    private func names(
        _ folded: FoldedName,
        in folder: InodeKey,
        _ descriptor: SharedDescriptor
    ) throws(Errno) -> [Name] {
        while true {
            switch look(for: folded, in: folder) {
            case .known(let names): return names
            case .unlisted(let serial): listed(try Self.list(descriptor), folder, serial)
            }
        }
    }

    private func look(for folded: FoldedName, in folder: InodeKey) -> Look {
        let (look, forgotten): (Look, [Folder]) = state.withLock { state in
            state.clock += 1
            guard let known = state.folders.index(forKey: folder) else {
                // From now on it takes what comes, so that the listing need not be of one moment.
                state.folders[folder] = Folder(serial: state.clock, lastUse: state.clock)
                return (.unlisted(serial: state.clock), trim(&state))
            }
            state.folders.values[known].lastUse = state.clock
            guard state.folders.values[known].isListed else {
                return (.unlisted(serial: state.folders.values[known].serial), [])
            }
            return (.known(state.folders.values[known].names[folded] ?? []), [])
        }
        withExtendedLifetime(forgotten) {}
        return look
    }

    private static func list(_ path: SharedDescriptor) throws(Errno) -> [FoldedName: [Name]] {
        let descriptor = try FolderHandle.open(path)
        var result: [FoldedName: [Name]] = [:]
        var entries = DirectoryEntries()
        defer { entries.deallocate() }
        while let entry = try entries.current(descriptor.raw) {
            // No disk has an entry that is no name.
            if !entry.isSelfOrParent, let name = try? Name(cString: entry.name) { result.note(name, name.folded) }
            entries.advance(past: entry)
        }
        return result
    }

    /// If the folder was forgotten meanwhile, so was what came: it is listed again.
    private func listed(_ names: [FoldedName: [Name]], _ folder: InodeKey, _ serial: UInt64) {
        let forgotten = state.withLock { state in
            state.change(folder) { folder in
                guard folder.serial == serial, !folder.isListed else { return }
                var names = names
                for (folded, came) in folder.names {
                    for name in came { names.note(name, folded) }
                }
                folder.names = names
                folder.isListed = true
            }
            return trim(&state)
        }
        withExtendedLifetime(forgotten) {}
    }

    /// - Returns: what is forgotten.
    private func trim(_ state: inout State) -> [Folder] {
        var forgotten: [Folder] = []
        while state.folders.count > folderLimit || state.nameCount > nameLimit && state.folders.count > 1 {
            guard let oldest = state.folders.min(by: { $0.value.lastUse < $1.value.lastUse })?.key else { break }
            if let folder = state.remove(oldest) { forgotten.append(folder) }
        }
        return forgotten
    }
}

extension [FoldedName: [Name]] {
    fileprivate mutating func note(_ name: Name, _ folded: FoldedName) {
        guard self[folded]?.contains(name) != true else { return }
        self[folded, default: []].append(name)
    }
}
