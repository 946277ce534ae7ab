internal import CatalogModel
internal import Reconciliation
internal import UbiquityModel

/// The feed, and other views of what is there.
extension ContainerState {
    func changes(since: LogPosition, limit: Int, container: Int64) -> CatalogPage {
        guard isKnown(since) else {
            return CatalogPage(position: .beginning, isUnknownPosition: true, head: head, container: container)
        }
        var page = CatalogPage(position: head, head: head, container: container)
        var bytes = 0
        var isCut = false
        for index in Int(since.counter)..<log.count {
            guard let stored = items[log[index]], stored.item.position == UInt64(index) + 1 else { continue }
            guard page.entries.count < limit, bytes < CatalogPage.byteLimit else {
                isCut = true
                break
            }
            append(stored, to: &page.entries, &bytes)
        }
        if isCut, let last = page.entries.last {
            page.hasMore = true
            page.position = LogPosition(counter: last.item.position, hash: hash(at: last.item.position) ?? [])
        }
        return page
    }

    /// Whether the position is one that was given out here.
    private func isKnown(_ position: LogPosition) -> Bool {
        if position == .beginning { return true }
        guard position.counter > 0, position.counter <= head.counter else { return false }
        return hash(at: position.counter) == position.hash
    }

    /// The hash of the commit that gave out the position.
    private func hash(at counter: UInt64) -> [UInt8]? {
        var (low, high) = (0, commits.count)
        while low < high {
            let middle = (low + high) / 2
            if commits[middle].counter < counter { low = middle + 1 } else { high = middle }
        }
        return low < commits.count ? commits[low].hash : nil
    }

    func children(of asked: [ItemID], after: Name?, limit: Int) -> ChildrenPage {
        var page = ChildrenPage()
        var bytes = 0
        for (index, id) in asked.enumerated() {
            let folder = folders[id] ?? FolderState()
            let start = index == 0 ? after : nil
            if start == nil {
                let announced = folder.announced.compactMap { items[$0] }
                for stored in announced.sorted(by: { $0.item.position < $1.item.position }) {
                    guard bytes < CatalogPage.byteLimit else { break }
                    append(stored, to: &page.entries, &bytes)
                }
            }
            // However long the announced ones are: the next page begins further on.
            let least = index == 0 ? 1 : 0
            let room = max(least, limit - page.entries.count)
            var told = [Name]()
            for (name, child) in folder.names.sorted(by: { $0.key < $1.key }) {
                if let start, name <= start { continue }
                guard told.count < room, bytes < CatalogPage.byteLimit || told.count < least else {
                    page.last = told.last ?? start
                    return page
                }
                if let stored = items[child] { append(stored, to: &page.entries, &bytes) }
                told.append(name)
            }
            page.completeCount += 1
        }
        return page
    }

    private func append(_ stored: StoredItem, to entries: inout [CatalogPage.Entry], _ bytes: inout Int) {
        let entry = CatalogPage.Entry(item: stored.told, manifest: shortManifest(of: stored.item))
        bytes += entry.byteCount
        entries.append(entry)
    }

    private func shortManifest(of item: RemoteItem) -> Manifest? {
        guard case .file(let file) = item.content, let content = file.content, let manifest = contents[content],
            manifest.entries.count * 36 <= CatalogPage.manifestByteLimit
        else { return nil }
        return manifest
    }

    func versions(of item: ItemID) -> [ItemVersion]? {
        guard items[item] != nil else { return nil }
        let versions = (revisionsOfItems[item] ?? []).compactMap { revisions[$0] }.filter { revision in
            !revision.isDiscarded && !(revision.version.kind == .saved && revision.isUnwanted)
        }.map(\.version)
        let sorted = versions.sorted { left, right in
            if left.kind != right.kind { return left.kind.rawValue < right.kind.rawValue }
            if left.edited != right.edited { return left.edited > right.edited }
            return left.revision < right.revision
        }
        return Array(sorted.prefix(ItemVersion.listed))
    }

    /// Of an item's current revision, or of one that is listed among its versions.
    func content(of revision: RevisionID) -> ContentID? {
        guard let stored = revisions[revision] else { return nil }
        if case .file(let file)? = items[stored.item]?.item.content, file.revision == revision { return file.content }
        guard !stored.isDiscarded, !(stored.version.kind == .saved && stored.isUnwanted) else { return nil }
        return stored.version.content
    }

    func deleted(since: Timestamp, after: DeletedPosition?, limit: Int) -> DeletedPage {
        let listed = items.values.compactMap { stored -> (item: RemoteItem, deletion: StoredItem.Deletion)? in
            guard let deletion = stored.deletion, !stored.item.isAnnounced, deletion.time >= since else { return nil }
            if let after, (deletion.time, stored.item.position) >= (after.deleted, after.position) { return nil }
            return (stored.told, deletion)
        }
        var page = DeletedPage()
        var folders = FolderPaths()
        var bytes = 0
        for (item, deletion) in listed.sorted(by: {
            ($0.deletion.time, $0.item.position) > ($1.deletion.time, $1.item.position)
        }) {
            guard page.items.count < limit, bytes < CatalogPage.byteLimit else {
                page.hasMore = true
                break
            }
            let path = folders.path(of: item.place) { items[$0]?.item.place }
            let deleted = DeletedItem(item: item, path: path, deleted: deletion.time, device: deletion.device)
            bytes += deleted.byteCount
            page.items.append(deleted)
        }
        return page
    }

    func manifest(of content: ContentID) -> Manifest? { contents[content] }

    func content(of revision: RevisionID, _ item: ItemID) -> ContentID? {
        revisions[revision].flatMap { $0.item == item ? $0.version.content : nil }
    }

    func wholeness(_ item: ItemID, _ revision: RevisionID) -> Wholeness {
        guard let content = content(of: revision, item), let manifest = contents[content]
        else { return .unknown }
        var packs: [UInt64: UInt64] = [:]
        for entry in manifest.entries {
            guard let chunk = chunks[entry.chunk] else { return .unknown }
            packs[chunk.pack] = max(packs[chunk.pack] ?? 0, chunk.end)
        }
        return Wholeness(isKnown: true, packs: packs)
    }
}
