import Driver
import EngineCore
import Logging
import Reconciliation
import Replica
import SystemPackage
package import UbiquityModel

/// What is asked about items: their state, for the command line and for the extended attributes.
extension ContainerEngine {
    struct Resolved {
        var path: ItemPath
        var place: LocalPlace
        var state: LocalState
        var row: SyncedItem?
        var remote: RemoteItem?
    }

    /// The item at a path of the mount; one that is in the cloud only is made.
    func resolve(_ path: ItemPath) throws(EngineError) -> Resolved {
        do throws(EngineError) {
            let item = try resolveHere(path)
            // Somebody's lookup may have made it a moment ago, before its row is written.
            guard item.row == nil, populator.hasMade else { return item }
            recordPopulated()
            return try resolveHere(path)
        } catch {
            guard case .notFound = error, populator.hasFolders, populate(path) else { throw error }
            return try resolveHere(path)
        }
    }

    private func resolveHere(_ path: ItemPath) throws(EngineError) -> Resolved {
        do {
            guard let name = path.last else {
                let state = try replica.tree.observe(descriptor: replica.tree.rootDescriptor)
                // The root has no place of its own; its key stands for both.
                let place = LocalPlace(folder: replica.tree.rootKey, name: try Name("root"))
                return Resolved(path: path, place: place, state: state)
            }
            if let package = try package(on: path) { return try resolveHere(package) }
            let folder = try replica.tree.openFolder(at: path.parent)
            let plain = try replica.tree.observe(in: folder.raw, name)
            guard let state = try tracker.view.seen(plain, in: folder.raw, name) else {
                throw EngineError.notFound(path)
            }
            let place = LocalPlace(folder: try InodeKey(descriptor: folder.raw), name: name)
            let row = try row(of: place, state)
            return Resolved(
                path: path,
                place: place,
                state: state,
                row: row,
                remote: try row.flatMap { try replica.database.remote($0.id) }
            )
        } catch let error as EngineError {
            throw error
        } catch .noSuchFileOrDirectory as Errno, .notDirectory as Errno {
            throw .notFound(path)
        } catch {
            throw .failed("\(path): \(error)")
        }
    }

    /// The package that an item is or lies in, whether or not the item is there.
    package func enclosingPackage(of path: ItemPath) -> ItemPath? {
        if let above = (try? package(on: path)) ?? nil { return above }
        guard let item = try? resolve(path), item.state.kind == .package else { return nil }
        return item.path
    }

    /// A package on the way to a path: what lies in it is no item, so that what is asked of it is asked of the package.
    private func package(on path: ItemPath) throws -> ItemPath? {
        for count in 1..<max(1, path.names.count) where populator.packages.maybePackage(path.names[count - 1]) {
            let above = ItemPath(Array(path.names.prefix(count)))
            let folder = try replica.tree.openFolder(at: above.parent)
            let name = path.names[count - 1]
            let plain = try replica.tree.observe(in: folder.raw, name)
            if try tracker.view.seen(plain, in: folder.raw, name)?.kind == .package { return above }
        }
        return nil
    }

    private func row(of place: LocalPlace, _ state: LocalState) throws -> SyncedItem? {
        let rows = try replica.database.synced(key: state.key)
        if rows.count > 1 {
            // Files that were exchanged: until both are sent, the inode is in two rows.
            let own = rows.first {
                $0.place.name == place.name && tracker.folderKey(of: $0.place.parent) == place.folder
            }
            if let own { return own }
        }
        if let row = rows.first { return row }
        let parent: ItemID?
        if place.folder == replica.tree.rootKey {
            parent = .root
        } else {
            parent = try replica.database.synced(key: place.folder).first { $0.content == .folder }?.id
        }
        guard let parent else { return nil }
        return try replica.database.synced(at: Place(parent: parent, name: place.name)).first
    }

    package func item(at path: ItemPath) throws(EngineError) -> ItemStatus {
        drainChanges()
        return status(of: try resolve(path))
    }

    /// Begins to look through a folder: its items at all depths, without itself.
    /// - Parameter last: what was told last, if that has begun before.
    package func beginWalk(under folder: ItemPath, after last: ItemPath?) throws(EngineError) -> ItemWalk {
        drainChanges()
        var walk = ItemWalk()
        guard let top = try level(of: .here(try resolve(folder))) else { return walk }
        walk.enter(top)
        for name in (last?.names ?? []).dropFirst(folder.names.count) {
            guard let (path, entry) = walk.skip(to: name), let found = find(entry, path),
                let below = try level(of: found)
            else { break }
            walk.enter(below)
        }
        return walk
    }

    /// The next items, so many at most. Those that are in the cloud only are not made for it.
    /// - Returns: `rest` goes on behind them; `nil` at the end.
    package func items(
        continuing walk: ItemWalk,
        limit: Int
    ) async throws(EngineError) -> (items: [ItemStatus], rest: ItemWalk?) {
        drainChanges()
        var walk = walk
        var result: [ItemStatus] = []
        var looked = 0
        while result.count < limit, let (path, entry) = walk.next() {
            looked += 1
            // The engine has other work as well, however many there are.
            if looked % Self.lookedAtAtOnce == 0 { await Task.yield() }
            // What vanished meanwhile is not listed.
            guard let found = find(entry, path) else { continue }
            switch found {
            case .here(let item): result.append(status(of: item))
            case .cloudOnly(let remote, let path): result.append(status(ofCloudOnly: remote, path))
            }
            if let below = try level(of: found) { walk.enter(below) }
        }
        return (result, walk.isAtEnd ? nil : walk)
    }

    private enum Found {
        case here(Resolved)
        case cloudOnly(RemoteItem, ItemPath)
    }

    private func find(_ entry: ItemWalk.Entry, _ path: ItemPath) -> Found? {
        // Somebody may have asked for it since it was listed: then it is here.
        if let id = entry.cloudOnly, ((try? replica.database.synced(id)) ?? nil) == nil,
            let remote = (try? replica.database.remote(id)) ?? nil, !remote.isDeleted
        {
            return .cloudOnly(remote, path)
        }
        return (try? resolve(path)).map { .here($0) }
    }

    /// What lies in a folder, by name; `nil` for all else.
    private func level(of found: Found) throws(EngineError) -> ItemWalk.Level? {
        switch found {
        case .here(let item):
            guard item.state.kind == .folder else { return nil }
            var entries: [ItemWalk.Entry]
            do throws(Errno) {
                let opened = try replica.tree.openFolder(at: item.path)
                entries = try replica.tree.names(in: opened.raw).map { ItemWalk.Entry(name: $0) }
            } catch {
                // What vanished meanwhile is not listed.
                return nil
            }
            if item.path.isRoot || item.row != nil {
                entries += try cloudOnly(in: item.state.key).map { ItemWalk.Entry(name: $0.name, cloudOnly: $0.id) }
            }
            entries.sort { $0.name < $1.name }
            return ItemWalk.Level(path: item.path, entries: entries)
        case .cloudOnly(let remote, let path):
            guard remote.content.kind == .folder else { return nil }
            let entries = (try? replica.database.cloudOnlyEntries(of: remote.id)) ?? []
            return ItemWalk.Level(
                path: path,
                entries: entries.map { ItemWalk.Entry(name: $0.name, cloudOnly: $0.id) }
            )
        }
    }

    private func cloudOnly(in folder: InodeKey) throws(EngineError) -> [CloudEntry] {
        do throws(ReplicaError) { return try populator.entries(of: folder) } catch { throw .failed("\(error)") }
    }

    private func status(ofCloudOnly remote: RemoteItem, _ path: ItemPath) -> ItemStatus {
        let isFile = remote.content.revision != nil
        return ItemStatus(
            path: path,
            kind: remote.content.kind,
            state: isFile ? .dataless : .current,
            conflictCount: remote.conflicts.count,
            percent: isFile && remote.content.size > 0 ? 0 : 100,
            sizeBytes: remote.content.size,
            localBytes: 0,
            revision: remote.content.revision,
            isPinned: isPinned(remote),
            error: problems[remote.id].map { said($0.reason, [.item(remote.id)]) },
            reason: nil,
            awaitedFrom: awaitedFrom(remote)
        )
    }

    private func awaitedFrom(_ remote: RemoteItem?) -> String? {
        guard let remote, remote.isAnnounced, !remote.isDeleted, remote.author != tracker.view.deviceName else {
            return nil
        }
        return remote.author
    }

    /// A folder's items at all depths, itself first, as far as they are here.
    /// - Parameter populating: whether those that are in the cloud only come here for it.
    func walk(_ path: ItemPath, populating: Bool = false) async throws(EngineError) -> [Resolved] {
        let top = try resolve(path)
        var result = [top]
        guard top.state.kind == .folder else { return result }
        var folders = [path]
        while let folder = folders.popLast() {
            try requireRunning()
            let names: [Name]
            do {
                let opened = try replica.tree.openFolder(at: folder)
                if populating { try await populateAll(try InodeKey(descriptor: opened.raw)) }
                names = try replica.tree.names(in: opened.raw).sorted()
            } catch {
                // What vanished meanwhile is not listed.
                let vanished: [Errno] = [.noSuchFileOrDirectory, .stale, .notDirectory]
                guard populating, !vanished.contains(error as? Errno ?? .ioError) else { continue }
                switch error as? Errno {
                case .noSpace: throw .noSpace
                case .networkDown: throw .offline(connectionProblem ?? "\(folder): not listed yet")
                case .timedOut: throw .stalled("\(folder): the server does not list it")
                default: throw .failed("\(folder): \(error)")
                }
            }
            for name in names {
                // The engine has other work as well, however many there are.
                if result.count % Self.lookedAtAtOnce == 0 { await Task.yield() }
                let path = folder.appending(name)
                // What vanished meanwhile is not listed.
                guard let item = try? resolve(path) else { continue }
                result.append(item)
                if item.state.kind == .folder { folders.append(path) }
            }
        }
        return result
    }

    private static let lookedAtAtOnce = 100

    private func populateAll(_ folder: InodeKey) async throws {
        if let item = populator.item(of: folder), let failure = await listed(item) { throw failure }
        var names = try populator.entries(of: folder).map(\.name)[...]
        while !names.isEmpty {
            try populate(folder, names.prefix(Self.lookedAtAtOnce))
            names = names.dropFirst(Self.lookedAtAtOnce)
            await Task.yield()
        }
    }

    /// Returns when all names in it are known, or why they do not come.
    private func listed(_ folder: ItemID) async -> Errno? {
        await withCheckedContinuation { continuation in
            let request = listing.wait(for: folder) { continuation.resume(returning: $0) }
            if request == nil { continuation.resume(returning: nil) }
        }
    }

    func status(of item: Resolved) -> ItemStatus {
        let kind: ItemKind? =
            switch item.state.kind {
            case .file: .file
            case .folder: .folder
            case .symlink: .symlink
            case .package: .package
            case .other: nil
            }
        let localOnly = localOnlyReason(item)?.description
        let reason = localOnly ?? (kind == nil ? "only files, folders and symbolic links are sent" : nil)
        let transfer =
            item.row.flatMap { meter.transfer(of: $0.id) }
            ?? tracker.newItems[item.state.key].flatMap { meter.transfer(of: $0) }
        let open = item.state.isDataless ? host.filler.openFile(item.state.key) : nil
        var item = item
        if item.state.isDataless, open == nil, let seen = (try? observe(item.place)) ?? nil, seen.key == item.state.key
        {
            // It may have become whole since it was looked at, and then nobody knows of a transfer any more.
            item.state = seen
        }
        let state = state(of: item, isLocalOnly: reason != nil, transfer: transfer)
        let here = localBytes(item, open)
        let size = item.state.facts?.bytes ?? item.state.size
        var percent = Sizes.percent(here, of: size)
        if let transfer, transfer.bytesTotal > 0 {
            percent = Sizes.percent(transfer.bytesDone, of: transfer.bytesTotal)
        }
        if state == .current { percent = 100 }
        var revision: RevisionID?
        if case .file(let file)? = item.row?.content { revision = file.revision }
        return ItemStatus(
            path: item.path,
            kind: kind,
            state: state,
            conflictCount: item.remote?.conflicts.count ?? 0,
            percent: percent,
            sizeBytes: size,
            localBytes: here,
            revision: revision,
            isPinned: item.row.map { isPinned($0) } ?? false,
            error: problem(of: item),
            reason: reason,
            awaitedFrom: awaitedFrom(item.remote)
        )
    }

    /// Why something stays on this device: by its name, or since it is ignored, which is said only of what the cloud does not have.
    func localOnlyReason(_ item: Resolved) -> LocalOnly.Reason? {
        guard !item.path.isRoot else { return nil }
        return tracker.localOnlyReason(item.place, item.path)
            ?? tracker.reasonToStay(item.place, item.state, item.row)
    }

    private func problem(of item: Resolved) -> String? {
        if IgnoreRules.isName(item.place.name), let fault = tracker.ignoring.faults[item.place.folder] { return fault }
        if item.row == nil, !item.path.isRoot,
            case .waits(let unread)? = try? tracker.ruling(onUnsent: item.place, item.state)
        {
            return "waits for \(unread.path), which is not here"
        }
        guard let id = item.row?.id ?? tracker.newItems[item.state.key], let problem = problems[id] else { return nil }
        return said(problem.reason, [.place(item.place), .item(id)])
    }

    /// What is wrong, and when it is tried again (semantics section 2).
    private func said(_ reason: String, _ works: [Core.Work]) -> String {
        guard let retry = core.retry(of: works, at: now) else { return reason }
        return "\(reason); \(retry.description)"
    }

    private func localBytes(_ item: Resolved, _ open: PlaceholderFile?) -> Int64 {
        if let facts = item.state.facts { return facts.localBytes }
        guard item.state.kind == .file else { return 0 }
        guard let placeholder = item.state.placeholder else { return item.state.size }
        if let open { return open.present.count }
        guard let row = item.row else { return 0 }
        return (try? replica.database.ranges(row.id, placeholder))??.count ?? 0
    }

    private func state(of item: Resolved, isLocalOnly: Bool, transfer: TransferMeter.Entry?) -> ItemStatus.State {
        if item.path.isRoot { return .current }
        // What was moved to where nothing is sent leaves the cloud once its content is here, and not before (semantics section 2).
        if isLocalOnly { return item.state.lacksContent ? .waiting : .localOnly }
        if transfer?.direction == .upload { return .uploading }
        if isUnsent(item) { return .waiting }
        if transfer?.direction == .download { return .downloading }
        if item.state.lacksContent { return .dataless }
        if let row = item.row, let remote = item.remote, !Planner.sameContent(row.content, remote.content) {
            return .downloaded
        }
        return .current
    }

    private func isUnsent(_ item: Resolved) -> Bool {
        guard let row = item.row, let local = row.local else { return true }
        if local.key != item.state.key { return true }
        if item.state.kind == .package, !local.describes(item.state) { return true }
        if item.state.kind == .file, !item.state.isDataless,
            local.size != item.state.size || local.modified != item.state.modified
        {
            return true
        }
        return core.isWaiting(.place(item.place)) && tracker.aspects[item.place] != nil
    }

    // MARK: Extended attributes

    func attributeText(
        _ name: ItemAttributeName,
        key: InodeKey,
        parent: InodeKey,
        name itemName: Name
    ) -> Result<[UInt8], Errno> {
        drainChanges()
        let path: ItemPath
        if key == replica.tree.rootKey {
            path = .root
        } else {
            guard let folder = replica.folders.path(of: parent) else { return .failure(.noAttribute) }
            path = folder.appending(itemName)
        }
        guard let status = try? item(at: path) else { return .failure(.noAttribute) }
        switch name {
        case .state: return .success(Array(status.state.rawValue.utf8))
        case .percent: return .success(Array("\(status.percent)".utf8))
        case .conflicts: return .success(Array("\(status.conflictCount)".utf8))
        case .revision:
            guard let revision = status.revision else { return .failure(.noAttribute) }
            return .success(Array(revision.description.utf8))
        }
    }

    func control(_ verb: String, parent: InodeKey, name: Name) async {
        guard let folder = replica.folders.path(of: parent) else { return }
        let path = folder.appending(name)
        do throws(EngineError) {
            switch verb {
            case "evict": _ = try await evict(path)
            case "download": try await download(path) { _ in }
            case "pin": try await setPinned(true, path)
            case "unpin": try await setPinned(false, path)
            default: return
            }
        } catch {
            logger.info("\(verb) did not succeed", metadata: ["path": "\(path)", "why": "\(error)"])
        }
    }

    // MARK: Pins

    /// Pinned itself, or in a pinned folder.
    nonisolated func isPinned(_ row: SyncedItem) -> Bool { isPinned(row.id, in: row.place.parent) }
    nonisolated func isPinned(_ remote: RemoteItem) -> Bool { isPinned(remote.id, in: remote.place.parent) }

    nonisolated func isPinned(_ id: ItemID, in parent: ItemID) -> Bool {
        // Mostly there are none, and nothing has to be known of the folders above.
        guard (try? replica.database.hasPins()) ?? false else { return false }
        var items = [id]
        var next: ItemID? = parent
        while let above = next, items.count <= 1000 {
            items.append(above)
            next = above == .root ? nil : folder(of: above)
        }
        return (try? replica.database.isAnyPinned(items)) ?? false
    }

    /// In which an item lies, which may be in the cloud only.
    private nonisolated func folder(of item: ItemID) -> ItemID? {
        if let row = (try? replica.database.synced(item)) ?? nil { return row.place.parent }
        return ((try? replica.database.remote(item)) ?? nil)?.place.parent
    }

    package func setPinned(_ pinned: Bool, _ path: ItemPath) async throws(EngineError) {
        let item = try resolve(path)
        let id: ItemID
        if path.isRoot {
            id = .root
        } else {
            guard let row = item.row else { throw .busy("\(path): not sent yet") }
            id = row.id
        }
        do { try replica.database.setPinned(pinned, [id]) } catch { throw .failed("\(error)") }
        // Beyond the local limit there is other content, or this one again.
        contentWatch.grew()
        if pinned { try await download(path) { _ in } }
    }
}

/// How far a look through a folder has come that is made in parts. Each folder comes before what lies in it, and names in their order: so
/// it is known what comes after an item, also when that has gone. What is moved meanwhile may come twice, or not at all.
package struct ItemWalk: Sendable {
    /// What lies in one folder.
    struct Level {
        var path: ItemPath
        var entries: [Entry]
        var next = 0
    }

    struct Entry {
        var name: Name
        /// `nil` for what is here.
        var cloudOnly: ItemID?
    }

    /// From the top down.
    private var levels: [Level] = []

    var isAtEnd: Bool { levels.allSatisfy { $0.next == $0.entries.count } }

    /// What was told last is a folder.
    mutating func enter(_ level: Level) { levels.append(level) }

    /// `nil` at the end.
    mutating func next() -> (path: ItemPath, entry: Entry)? {
        while let last = levels.indices.last {
            let next = levels[last].next
            if next < levels[last].entries.count {
                levels[last].next += 1
                let entry = levels[last].entries[next]
                return (levels[last].path.appending(entry.name), entry)
            }
            levels.removeLast()
        }
        return nil
    }

    /// Passes over everything up to a name.
    /// - Returns: what has it.
    mutating func skip(to name: Name) -> (path: ItemPath, entry: Entry)? {
        guard let last = levels.indices.last else { return nil }
        let level = levels[last]
        let next = level.entries.firstIndex { $0.name > name } ?? level.entries.count
        levels[last].next = next
        guard let entry = level.entries[..<next].last, entry.name == name else { return nil }
        return (level.path.appending(name), entry)
    }
}
