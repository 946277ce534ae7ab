import Driver
import EngineCore
import Logging
import Replica
import SystemPackage
import UbiquityModel

/// Comparing the backing tree with the synced tree, after a stop that was not clean.
extension ContainerEngine {
    /// Learns where all folders are, and (after an unclean stop) marks every place that differs from its synced row.
    func scan(onlyFolders: Bool) throws {
        replica.folders.removeAll()
        var folders: [(key: InodeKey, item: ItemID?)] = [(replica.tree.rootKey, .root)]
        var missing: [SyncedItem] = []
        while let folder = folders.popLast() {
            let opened: OwnedDescriptor
            do {
                opened = try replica.tree.openFolder(key: folder.key)
            } catch {
                logger.error(
                    "a folder cannot be read",
                    metadata: ["path": "\(String(describing: replica.folders.path(of: folder.key)))"]
                )
                continue
            }
            try scanFolder(opened, folder.key, item: folder.item, onlyFolders: onlyFolders, into: &folders, &missing)
        }
        for folder in missing where folder.local.map({ replica.folders.entry($0.key) == nil }) ?? true {
            // No place leads to what lay in it.
            let lost = try replica.database.syncedSubtree(of: folder.id).map(\.id)
            handle(.pendingLoaded(lost, isLast: false))
        }
    }

    private func scanFolder(
        _ opened: borrowing OwnedDescriptor,
        _ key: InodeKey,
        item: ItemID?,
        onlyFolders: Bool,
        into folders: inout [(key: InodeKey, item: ItemID?)],
        _ missing: inout [SyncedItem]
    ) throws {
        var rows: [Name: SyncedItem] = [:]
        if let item { for row in try replica.database.syncedChildren(of: item) { rows[row.place.name] = row } }
        for name in try replica.tree.names(in: opened.raw) {
            let row = rows.removeValue(forKey: name)
            guard let state = try? replica.tree.observe(in: opened.raw, name) else { continue }
            if !onlyFolders { try withdrawDeletion(of: state.key, row) }
            if state.kind == .folder {
                replica.folders.insert(state.key, parent: key, name: name)
                folders.append((state.key, row?.local?.key == state.key ? row?.id : try folderItem(state.key)))
            }
            if !onlyFolders, row?.local?.key != state.key, state.kind != .other,
                try !replica.database.synced(key: state.key).isEmpty
            {
                // It was moved while nobody looked.
                if state.linkCount == 1 || state.kind == .folder {
                    tracker.moves[state.key] = LocalPlace(folder: key, name: name)
                }
            }
            if !onlyFolders, state.kind != .other, !matches(state, row) {
                markScanned(LocalPlace(folder: key, name: name))
            }
        }
        guard !onlyFolders else { return }
        for (name, row) in rows.sorted(by: { $0.key < $1.key }) {
            markScanned(LocalPlace(folder: key, name: name))
            if row.content == .folder { missing.append(row) }
        }
    }

    /// The deletion was announced and not done before this device died. Left in the log, it would prove a later accident to be an act.
    private func withdrawDeletion(of key: InodeKey, _ row: SyncedItem?) throws(Errno) {
        var entries = [DeletionLog.Entry.inode(key)]
        if let row, row.local?.key == key { entries.append(.item(row.id)) }
        try replica.deletions.remove(entries.filter { replica.deletions.contains($0) })
    }

    private func folderItem(_ key: InodeKey) throws -> ItemID? {
        try replica.database.synced(key: key).first { if case .folder = $0.content { true } else { false } }?.id
    }

    private func matches(_ state: LocalState, _ row: SyncedItem?) -> Bool {
        guard let row, let local = row.local, local.key == state.key else { return false }
        if state.kind == .folder { return row.attributes.mode == state.mode }
        return local == LocalEvidence(state)
    }

    private func markScanned(_ place: LocalPlace) {
        tracker.aspects[place, default: []].formUnion([.content, .entry])
        handle(.changed(place, isOpen: false))
    }
}
