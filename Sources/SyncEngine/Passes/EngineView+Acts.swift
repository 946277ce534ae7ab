import Chunking
import CloudClient
import Driver
import EngineCore
import Glibc
import Replica
import SystemPackage
import UbiquityModel

extension EngineView: EngineDevice {
    var wallClock: Timestamp { Self.timeOfDay }
    func newOperation() -> OperationID { .made(at: wallClock) }
    func newRevision() -> RevisionID { .made(at: wallClock) }

    func noteChanges() -> Bool {
        guard let engine else { return true }
        return engine.assumeIsolated { engine in
            // In this order: a move that has ended meanwhile has been told of.
            let isComplete = !engine.host.isMoving
            engine.drainChanges()
            return isComplete
        }
    }

    func perform(_ effect: EngineCore.Effect) { engine?.assumeIsolated { $0.perform(effect) } }

    // MARK: The state database

    func manifest(_ content: ContentID) throws -> Manifest? { try replica.database.manifest(content) }
    func remoteChildren(of folder: ItemID) throws -> [RemoteItem] { try replica.database.remoteChildren(of: folder) }

    func hasSynced() throws -> Bool { try replica.database.hasSynced() }

    func differing(after last: ItemID?, limit: Int) throws -> [ItemID] {
        try replica.database.differing(after: last, limit: limit)
    }

    func write(sending: [(item: ItemID, sent: SentRevision)]) throws { try replica.database.write(sending: sending) }
    func write(sentLinks: [(item: ItemID, sent: SentLink)]) throws {
        try replica.database.write(sentLinks: sentLinks)
    }
    func write(sentDeletions: [(item: ItemID, sent: SentDeletion)]) throws {
        try replica.database.write(sentDeletions: sentDeletions)
    }

    func write(held isHeld: Bool, _ items: [ItemID]) throws { try replica.database.setHeld(isHeld, items) }

    func write(confirmed isConfirmed: Bool, _ items: [ItemID]) throws {
        try replica.database.setConfirmed(isConfirmed, items)
    }

    func write(changed isChanged: Bool, packages: [InodeKey]) throws {
        try replica.database.setChanged(isChanged, packages: packages)
    }

    func write(unwitnessed isUnwitnessed: Bool, _ places: [LocalPlace]) throws {
        try replica.database.setUnwitnessed(isUnwitnessed, places)
    }

    func rewrite(remote items: [RemoteItem], manifests: [ContentID: Manifest]) throws {
        try replica.database.rewrite(remote: items, manifests: manifests)
    }

    func remoteIDs(after last: ItemID?, limit: Int) throws -> [ItemID] {
        try replica.database.remoteItems(after: last, limit: limit).map(\.id)
    }

    func removeRemote(_ items: [ItemID], position: LogPosition) throws {
        try replica.database.removeRemote(items, position: position)
    }

    func wasFormer(_ content: ContentID) throws -> Bool { try replica.database.wasFormer(content) }

    func itemCount() throws -> Int {
        let counts = try replica.database.counts()
        return counts.synced + counts.cloudOnly
    }

    var loggedDeletions: Int { replica.deletions.count }

    func itemsDeletedHere(limit: Int) throws -> Set<ItemID> {
        var items: Set<ItemID> = []
        for entry in replica.deletions.entries() where items.count < limit {
            switch entry {
            case .item(let item): if try replica.database.synced(item) != nil { items.insert(item) }
            case .inode(let key): items.formUnion(try replica.database.synced(key: key).map(\.id))
            case .replacing: break
            }
        }
        return items
    }

    func syncedOrphans() throws -> [ItemID] { try replica.database.syncedOrphans() }

    func unlog(_ deletions: [DeletionEntry]) throws { try replica.deletions.remove(deletions) }

    nonisolated(nonsending) func record(_ record: PassRecord) async throws {
        try await engine?.recorded(record).get()
    }

    nonisolated(nonsending) func makeDurable(_ places: [LocalPlace], _ folders: Set<InodeKey>) async -> Bool {
        await engine?.makeDurable(places, folders) ?? false
    }

    // MARK: The backing tree

    var folders: FolderIndex { replica.folders }

    func forEachEntry(
        of folder: InodeKey,
        unless isPassedOver: (Name, LocalKind) throws -> Bool,
        _ body: (Name, LocalState?) throws -> Void
    ) throws {
        let opened = try replica.tree.openFolder(key: folder)
        for (name, kind) in try replica.tree.entries(in: opened.raw) {
            if let kind, try isPassedOver(name, kind) { continue }
            let state = (try? replica.tree.observe(in: opened.raw, name)) ?? nil
            try body(name, (try? seen(state, in: opened.raw, name)) ?? nil)
        }
    }

    nonisolated(nonsending) func stage(_ remote: RemoteItem) async throws -> String {
        guard let engine else { throw EngineError.failed("the engine has ended") }
        return try await engine.stage(remote)
    }

    static var smallArrival: Int64 { ReadAhead.smallFile }

    nonisolated(nonsending) func bring(_ arriving: [RemoteItem]) async -> [ItemID: String] {
        await engine?.bring(arriving) ?? [:]
    }

    nonisolated(nonsending) func wholeContent(_ wanted: WantedContent) async -> WholeContent {
        await engine?.wholeContent(wanted) ?? .not(.failed)
    }

    func discard(_ staged: String) {
        stagedPackages[staged] = nil
        populator.discarded(staged)
        let staging = replica.staging
        // The exchange could not be taken back, and what lies there now has been written to.
        if staging.mayHoldReplaced(staged) { return engine?.assumeIsolated { $0.keepReplaced(staged) } ?? () }
        BlockingPool.shared.submit { try? staging.remove(staged) }
    }

    nonisolated(nonsending) func perform(
        _ mutation: Mutation,
        at path: ItemPath
    ) async -> Result<MutationResult, MutationFailure>? {
        guard let mount else { return .failure(.stale) }
        guard let token = claims.begin(engineWrite: path) else { return nil }
        ahead.drop()
        let result = await withCheckedContinuation { continuation in
            mount.apply(mutation) { continuation.resume(returning: $0) }
        }
        claims.end(token)
        return translated(result, of: mutation)
    }

    nonisolated(nonsending) func perform(
        _ acts: [(Mutation, ItemPath)]
    ) async -> [Result<MutationResult, MutationFailure>?] {
        guard let mount else { return acts.map { _ in .failure(.stale) } }
        ahead.drop()
        let tokens = acts.map { claims.begin(engineWrite: $0.1) }
        let mutations = zip(acts, tokens).filter { $0.1 != nil }.map(\.0.0)
        var results = await withCheckedContinuation { continuation in
            mount.apply(mutations) { continuation.resume(returning: $0) }
        }[...]
        return zip(acts, tokens).map { act, token in
            guard let token else { return nil }
            claims.end(token)
            return translated(results.popFirst() ?? .failure(.stale), of: act.0)
        }
    }

    func noteRevision(_ revision: RevisionID, of item: ItemID) {
        populator.known.note(revision, of: item)
    }

    // MARK: Folders in the cloud only

    func willAppear(_ staged: [(item: ItemID, name: String)]) {
        if populator.hasFolders { populator.willAppear(staged) }
    }

    func haveAppeared() { populator.haveAppeared() }

    func populatedFolder(_ item: ItemID) -> InodeKey? { engine?.assumeIsolated { $0.populatedFolder(item) } ?? nil }

    // MARK: Programs

    func hasWriter(_ key: InodeKey) -> Bool {
        guard let mount else { return false }
        return mount.hasWriter(key) || (packageFiles[key] ?? []).contains { mount.hasWriter($0) }
    }
    func collectDirty(_ key: InodeKey) {
        mount?.collectDirty(key)
        // The driver tells of a file once until its mark is taken, also of a package's.
        for file in packageFiles[key] ?? [] { mount?.collectDirty(file) }
    }
    func mayRead(_ path: ItemPath) -> Bool { claims.engineMay(read: path) }

    func wake(_ works: Set<EngineCore.Work>, whenFree path: ItemPath) {
        guard let engine else { return }
        // As `whenFree` asks.
        let wait = ClaimWait(path: path, isToRead: !claims.engineMay(read: path))
        let isOpen = claimWaits[wait] != nil
        claimWaits[wait, default: []].formUnion(works)
        guard !isOpen else { return }
        let claims = claims
        // It ends with the claim, or when the container is taken from the broker: the engine may be gone by then.
        Task { [weak engine] in
            await claims.whenFree(path)
            await engine?.becameFree(wait)
        }
    }

    func log(_ deletion: DeletionEntry) { try? replica.deletions.append(deletion) }

    func itemBeingCreated(_ key: InodeKey) -> ItemID? { engine?.host.itemBeingCreated(key) }

    func beginCreating(_ key: InodeKey, _ item: ItemID) {
        engine?.host.beginCreating(key, item)
    }

    // MARK: Contents and the cloud

    static var smallFile: Int64 { Uploader.smallFile }
    private static var readers: Int { 4 }
    /// Files that a thread reads one after the other, so that none is woken for each of many.
    private static var filesInARow: Int { 16 }

    nonisolated(nonsending) func read(_ files: [WantedFile]) async -> [Result<ReadContent, ReadFailure>] {
        let packages = files.filter { $0.state.kind == .package }
        guard !packages.isEmpty else { return await readFiles(files) }
        var read = await readFiles(files.filter { $0.state.kind != .package })[...]
        var results: [Result<ReadContent, ReadFailure>] = []
        for file in files {
            if file.state.kind == .package {
                results.append(await engine?.readSmallPackage(file) ?? .failure(.changed))
            } else {
                results.append(read.popFirst() ?? .failure(.changed))
            }
        }
        return results
    }

    nonisolated(nonsending) private func readFiles(_ files: [WantedFile]) async -> [Result<ReadContent, ReadFailure>] {
        let known = files.map { file in
            file.hasWriter ? nil : ahead.files[file.place].flatMap { $0.state == file.state ? $0 : nil }
        }
        let rest = zip(files, known).filter { $0.1 == nil }.map(\.0)
        var read = await readNow(rest)[...]
        return known.map { known in known.map { .success($0) } ?? read.popFirst() ?? .failure(.changed) }
    }

    nonisolated(nonsending) private func readNow(
        _ files: [WantedFile]
    ) async -> [Result<ReadContent, ReadFailure>] {
        guard !files.isEmpty else { return [] }
        let uploader = uploader
        let share = max(1, min(Self.filesInARow, files.count / Self.readers))
        var parts = stride(from: 0, to: files.count, by: share).makeIterator()
        return await withTaskGroup(of: (Int, [Result<ReadContent, ReadFailure>]).self) { group in
            var results = [Result<ReadContent, ReadFailure>](repeating: .failure(.changed), count: files.count)
            func add() {
                guard let start = parts.next() else { return }
                let part = Array(files[start..<min(files.count, start + share)])
                group.addTask { (start, await uploader.readSmall(part)) }
            }
            for _ in 0..<Self.readers { add() }
            for await (start, part) in group {
                results.replaceSubrange(start..<start + part.count, with: part)
                add()
            }
            return results
        }
    }

    func beginTransfer(_ file: WantedFile, of item: ItemID, _ works: Set<EngineCore.Work>) {
        engine?.assumeIsolated { $0.beginTransfer(file, of: item, works) }
    }

    nonisolated(nonsending) func missing(_ chunks: [ChunkID]) async throws -> Set<ChunkID> {
        Set(try await cloud.missing(container, chunks: chunks))
    }

    nonisolated(nonsending) func upload(_ chunks: [(id: ChunkID, bytes: [UInt8])]) async throws {
        try await uploader.send(chunks.map { ($0.id, $0.bytes) }, token: nil)
    }

    nonisolated(nonsending) func commit(
        _ operations: [ItemOperation],
        chunks: [(id: ChunkID, bytes: [UInt8])]
    ) async throws -> [OperationOutcome] {
        let frames = await uploader.encode(chunks.map { ($0.id, $0.bytes) })
        let answer = try await cloud.commit(
            container,
            operations: operations,
            frames: frames,
            clock: wallClock,
            bases: await formerManifests(operations),
            discardsFormer: engine?.keeping.rules.discardsFormer ?? false
        )
        uploader.meter.countSent(frames.reduce(0) { $0 + Int64($1.data.count) })
        guard answer.outcomes.count == operations.count else {
            throw CloudError.malformed("outcomes are missing from the answer")
        }
        for case .missingChunks(let chunks) in answer.outcomes { uploader.lost.note(chunks) }
        noteAnswered(answer.position)
        return answer.outcomes
    }

    private func noteAnswered(_ position: LogPosition) {
        engine?.assumeIsolated { engine in
            if position.counter > engine.answeredPosition?.counter ?? 0 { engine.answeredPosition = position }
            // What kept a pass from committing is over.
            engine.problems[.root] = nil
        }
    }

    /// Manifests shorter than this travel whole.
    private static var shortManifest: Int { 64 }

    /// The manifests that long ones follow.
    nonisolated(nonsending) private func formerManifests(_ operations: [ItemOperation]) async -> [ItemID: KnownManifest]
    {
        let items = operations.compactMap { operation -> ItemID? in
            guard case .edit(_, .file, _, let manifest, _) = operation.action else { return nil }
            return manifest.entries.count > Self.shortManifest ? operation.item : nil
        }
        guard !items.isEmpty else { return [:] }
        let replica = replica
        let known = try? await BlockingPool.shared.run {
            var known: [ItemID: KnownManifest] = [:]
            for item in items {
                guard case .file(let file)? = try replica.database.synced(item)?.content, let content = file.content,
                    let manifest = try replica.database.manifest(content)
                else { continue }
                known[item] = KnownManifest(content: content, manifest: manifest)
            }
            return known
        }
        // Not to know one is always right: then the manifest is sent whole.
        return known ?? [:]
    }

    func isOfConnection(_ error: any Error) -> Bool { error is CloudError }

    func connectionFailed(_ error: any Error) {
        let reason = error is RestoredCloud ? CloudError.offline("the server was restored") : error as? CloudError
        if let reason { engine?.assumeIsolated { $0.dropConnection(reason) } }
    }
}

extension ContainerEngine {
    /// What asks from now on waits anew.
    fileprivate func becameFree(_ wait: EngineView.ClaimWait) {
        wake(synchronizer.device.claimWaits.removeValue(forKey: wait) ?? [])
    }
}
