import CloudClient
import Driver
import EngineCore
import Logging
import Replica
import SystemPackage
import UbiquityModel

/// Bringing the contents of packages here, and giving them up.
extension ContainerEngine {
    /// Files of a package on their way at the same time.
    private static let width = 8

    /// What lies in a package at a place, and where.
    func tree(of place: LocalPlace) async throws(FillError) -> PackageTree {
        let replica = replica
        return try await onDisk {
            let folder = try replica.tree.openFolder(key: place.folder)
            let opened = try replica.tree.openAny(in: folder.raw, place.name)
            let tree = try PackageTree(folder: opened.raw)
            tree.noteFolders(in: replica.folders)
            return tree
        }
    }

    func folders(of tree: PackageTree) -> [ItemPath: InodeKey] {
        var keys: [ItemPath: InodeKey] = [.root: tree.state.key]
        for entry in tree.entries where entry.state.kind == .folder { keys[entry.element.path] = entry.state.key }
        return keys
    }

    // MARK: Bringing

    func bringPackageHere(_ place: LocalPlace) async -> FillError? {
        let tree: PackageTree
        do throws(FillError) { tree = try await self.tree(of: place) } catch { return error }
        let folders = folders(of: tree)
        var failure: FillError?
        await withTaskGroup(of: FillError?.self) { tasks in
            var wanted = tree.entries.lazy.filter(\.state.isDataless).makeIterator()
            func add() {
                guard let entry = wanted.next(), let folder = folders[entry.element.path.parent],
                    let name = entry.element.path.last
                else { return }
                tasks.addTask { await self.bringHere(LocalPlace(folder: folder, name: name)) }
            }
            for _ in 0..<Self.width { add() }
            for await error in tasks {
                failure = failure ?? error
                add()
            }
        }
        recordFilled()
        look(atPackagesOf: Set(tree.entries.compactMap(\.state.placeholder?.revision)))
        return failure
    }

    /// One whose files become whole one by one is not looked through for each.
    private static let lookingTime = Duration.milliseconds(500)

    /// Files of packages have become whole: their rows say whether anything is still missing.
    func noteFilled(packagesOf revisions: Set<RevisionID>) {
        guard !revisions.isEmpty else { return }
        let isFirst = packagesToLookAt.isEmpty
        packagesToLookAt.formUnion(revisions)
        guard isFirst else { return }
        Task {
            try? await Task.sleep(for: Self.lookingTime)
            let revisions = self.packagesToLookAt
            self.packagesToLookAt = []
            self.look(atPackagesOf: revisions)
        }
    }

    private func look(atPackagesOf revisions: Set<RevisionID>) {
        for revision in revisions.sorted() {
            for row in (try? replica.database.syncedPackages(revision: revision)) ?? [] {
                guard let local = row.local else { continue }
                noteContent(of: row)
                // Who waits for all of it looks whether it is here now.
                for work in tracker.waitingForContent.removeValue(forKey: local.key) ?? [] { handle(.woken(work)) }
            }
        }
        // Only now it counts.
        contentWatch.grew()
    }

    /// Writes down whether all of a package is here, or how much of it.
    private func noteContent(of row: SyncedItem) {
        // A pass may have written it since the caller got it.
        guard var row = (try? replica.database.synced(row.id)) ?? nil, let local = row.local,
            let place = tracker.currentPlace(of: local.key), let state = (try? observe(place)) ?? nil,
            state.kind == .package, local.describes(state), let facts = state.facts
        else { return }
        do {
            try replica.database.write(localBytes: facts.datalessElements > 0 ? facts.localBytes : 0, ofPackage: row)
            guard LocalEvidence(state) != local else { return }
            row.local = LocalEvidence(state)
            try replica.database.write(synced: [row])
            // Its content has come, which is a use as that of a file is.
            if local.isDataless { try replica.database.write(uses: [local.key: wallClock]) }
        } catch {
            logger.warning("what is here of a package is not recorded", metadata: ["why": "\(error)"])
        }
    }

    // MARK: Giving up

    /// Files in a package whose content is not here, and of which the disk has something all the same: programs have read a part of them.
    private func partlyHere(_ tree: PackageTree) async throws(FillError) -> Set<InodeKey> {
        let folders = folders(of: tree)
        return try await onDisk {
            var keys: Set<InodeKey> = []
            for entry in tree.entries where entry.state.isDataless {
                guard let folder = folders[entry.element.path.parent], let name = entry.element.path.last,
                    self.isPartlyHere(LocalPlace(folder: folder, name: name))
                else { continue }
                keys.insert(entry.state.key)
            }
            return keys
        }
    }

    /// What cannot be looked at has nothing that could be given up.
    private func hasParts(_ place: LocalPlace) async -> Bool {
        do throws(FillError) { return try await !partlyHere(try await tree(of: place)).isEmpty } catch { return false }
    }

    func evictPackage(_ item: Resolved) async -> EvictOutcome {
        func refused(_ reason: String, isTemporary: Bool = true) -> EvictOutcome {
            EvictOutcome(path: item.path, refusal: reason, isTemporary: isTemporary)
        }
        if let facts = item.state.facts, facts.localBytes == 0, await !hasParts(item.place) {
            return EvictOutcome(path: item.path, refusal: nil, isTemporary: false)
        }
        if let (reason, isTemporary) = refusal(item) { return refused(reason, isTemporary: isTemporary) }
        guard let row = item.row, let mount, case .file(let file) = row.content, let content = file.content else {
            return refused("not mounted")
        }
        do {
            if core.connection != .live { throw EngineError.offline("") }
            let confirmed = try await cloud.confirm(container.id, revisions: [(row.id, file.revision)])
            guard confirmed == [true] else { return refused("not whole in the cloud") }
        } catch { return refused(Self.unconfirmed) }
        do {
            let index = try await packageIndex(of: file)
            let chunks = PackageChunks(try await downloader.manifest(of: content, size: file.size))
            // Nothing of it would come back.
            guard chunks.areThose(of: index) else { return refused("not whole in the cloud") }
            let tree = try await tree(of: item.place)
            // Between two looks with the same result a program may have written, and put the times back.
            drainChanges()
            guard row.local?.describes(tree.state) == true, tree.index(completedBy: index) == index,
                !isChanged(at: item.place)
            else {
                return refused(Self.changed)
            }
            // The cloud may have taken long to answer.
            guard claims.engineMay(write: item.path) else { return refused(Self.isClaimed) }
            // Before: should this end in the middle, what is then moved out of it stands for a part of this revision (`FormerTable`).
            if var current = try replica.database.synced(row.id), current.content == row.content {
                current.local?.isDataless = true
                try replica.database.write(synced: [current])
            }
            let offsets = Dictionary(index.files.map { ($0.element.path, $0.offset) }) { first, _ in first }
            let folders = folders(of: tree)
            let partlyHere = try await partlyHere(tree)
            var isLinked = false
            for entry in tree.entries
            where entry.state.kind == .file && entry.state.size > 0
                && (!entry.state.isDataless || partlyHere.contains(entry.state.key))
            {
                guard let offset = offsets[entry.element.path], let folder = folders[entry.element.path.parent],
                    let name = entry.element.path.last
                else { continue }
                let generation = UInt64.random(in: .min ... .max)
                var placeholder = Placeholder(
                    revision: file.revision,
                    generation: generation,
                    size: entry.state.size,
                    modified: entry.state.modified,
                    mode: entry.state.mode,
                    offset: offset
                )
                if let present = entry.state.placeholder {
                    placeholder = present
                    placeholder.generation = generation
                }
                let renewed = placeholder
                // For each file of its own: who wants the package waits for one of them, is granted it, and then sees what has gone.
                guard let token = claims.begin(engineWrite: replica.folders.path(of: tree.state.key) ?? item.path)
                else {
                    noteContent(of: row)
                    return refused(Self.isClaimed)
                }
                let result = await withCheckedContinuation { continuation in
                    mount.evict(in: folder, name, expecting: LocalEvidence(entry.state), as: renewed) {
                        continuation.resume(returning: $0)
                    }
                }
                claims.end(token)
                guard case .failure(let failure) = result else { continue }
                if case .system(.tooManyLinks) = failure {
                    // Of this one it cannot be told what happens to it. All that lies behind it goes.
                    isLinked = true
                    continue
                }
                noteContent(of: row)
                switch failure {
                case .busy: return refused(Self.isOpen)
                case .stale, .notEmpty: return refused(Self.changed)
                case .system(let error): return refused("\(error)")
                }
            }
            populator.known.note(file.revision, of: row.id)
            noteContent(of: row)
            guard !isLinked else { return refused(Self.isLinked, isTemporary: false) }
            return EvictOutcome(path: item.path, refusal: nil, isTemporary: false)
        } catch {
            logger.info("a package is not evicted", metadata: ["content": "\(content)", "why": "\(error)"])
            return refused("\(error)")
        }
    }

    // MARK: After sending

    /// What could not be referred to a new revision when that was agreed on: a program had it open, or this ended before.
    func referToAgreedRevisions() async {
        do {
            for row in try replica.database.syncedPackages() where row.local?.isDataless == true {
                guard !synchronizer.isStopping else { return }
                guard let current = try replica.database.synced(row.id) else { continue }
                await referToNewRevision(current, try replica.database.remote(row.id))
            }
        } catch {
            // The next start looks again.
            logger.warning("what is missing of packages is not looked at", metadata: ["why": "\(error)"])
        }
    }

    /// A package was sent as a new revision while not all of it was here: what stands for the rest stands for that of the new one from here
    /// on, so that it does not depend on how long the cloud keeps the former.
    /// - Parameter remote: what the cloud says of it. Of an edit that was none, or that another one has overtaken, it may know no revision.
    func referToNewRevision(_ row: SyncedItem, _ remote: RemoteItem?) async {
        guard case .file(let file) = row.content, file.isPackage, remote?.content == row.content, let local = row.local,
            local.isDataless,
            let mount, let place = (try? tracker.ownPlace(of: row)) ?? nil
        else { return }
        do {
            let tree = try await tree(of: place)
            guard local.describes(tree.state), tree.state.size == file.size else { return }
            // Behind the attributes for which there is no room here.
            let more = tree.state.size - tree.index.contentSize
            let offsets = Dictionary(tree.index.files.map { ($0.element.path, $0.offset + more) }) { first, _ in first }
            let folders = folders(of: tree)
            for entry in tree.entries {
                guard var placeholder = entry.state.placeholder, let offset = offsets[entry.element.path],
                    placeholder.revision != file.revision || placeholder.offset != offset,
                    let folder = folders[entry.element.path.parent], let name = entry.element.path.last
                else { continue }
                placeholder.revision = file.revision
                placeholder.offset = offset
                placeholder.generation = .random(in: .min ... .max)
                let renewed = placeholder
                // One that somebody has open stays as it is, and is found by its revision: what that was stays known (`FormerTable`).
                _ = await withCheckedContinuation { continuation in
                    mount.evict(in: folder, name, expecting: LocalEvidence(entry.state), as: renewed) {
                        continuation.resume(returning: $0)
                    }
                }
            }
        } catch {
            logger.info("what is missing of a package refers to its former revision", metadata: ["why": "\(error)"])
        }
    }
}
