import EngineCore
import Reconciliation
import UbiquityModel

import struct SystemPackage.Errno

extension SimDevice: EngineDevice {
    var wallClock: Timestamp { machine.timeOfDay }
    var timestampTick: Duration { SimDisk.tick }
    func newOperation() -> OperationID { OperationID(at: machine.timeOfDay, using: &world.random) }
    func newRevision() -> RevisionID { RevisionID(at: machine.timeOfDay, using: &world.random) }

    func noteChanges() -> Bool {
        drain()
        return !machine.isMoving
    }

    /// A dead process writes nothing, and nobody to a full disk.
    func canWrite() throws {
        try alive()
        if machine.isDiskFull { throw Errno.noSpace }
        if machine.diskFails() { throw Errno.ioError }
    }

    // MARK: The state database

    func manifest(_ content: ContentID) throws -> Manifest? { machine.database.manifests[content] }
    func remoteChildren(of folder: ItemID) throws -> [RemoteItem] { machine.database.remoteChildren(of: folder) }

    func differing(after last: ItemID?, limit: Int) throws -> [ItemID] {
        machine.database.differing(after: last, limit: limit)
    }

    func write(sending: [(item: ItemID, sent: SentRevision)]) throws {
        try canWrite()
        for (item, sent) in sending { machine.database.sending[item] = sent }
    }

    func write(sentLinks: [(item: ItemID, sent: SentLink)]) throws {
        try canWrite()
        for (item, sent) in sentLinks { machine.database.sentLinks[item] = sent }
    }

    func write(sentDeletions: [(item: ItemID, sent: SentDeletion)]) throws {
        try canWrite()
        for (item, sent) in sentDeletions { machine.database.sentDeletions[item] = sent }
    }

    func write(held isHeld: Bool, _ items: [ItemID]) throws {
        try canWrite()
        if isHeld {
            machine.database.held.formUnion(items)
        } else {
            machine.database.held.subtract(items)
        }
    }

    func write(confirmed isConfirmed: Bool, _ items: [ItemID]) throws {
        try canWrite()
        if isConfirmed {
            machine.database.confirmed.formUnion(items)
        } else {
            machine.database.confirmed.subtract(items)
        }
    }

    func write(changed isChanged: Bool, packages: [InodeKey]) throws {
        try canWrite()
        if isChanged {
            machine.database.changedPackages.formUnion(packages)
        } else {
            machine.database.changedPackages.subtract(packages)
        }
    }

    func write(unwitnessed isUnwitnessed: Bool, _ places: [LocalPlace]) throws {
        try canWrite()
        if isUnwitnessed {
            machine.database.unwitnessed.formUnion(places)
        } else {
            machine.database.unwitnessed.subtract(places)
        }
    }

    func rewrite(remote items: [RemoteItem], manifests: [ContentID: Manifest]) throws {
        try canWrite()
        machine.database.rewrite(remote: items, manifests: manifests)
    }

    func remoteIDs(after last: ItemID?, limit: Int) throws -> [ItemID] {
        Array(machine.database.remote.keys.filter { id in last.map { id > $0 } ?? true }.sorted().prefix(limit))
    }

    func removeRemote(_ items: [ItemID], position: LogPosition) throws {
        try canWrite()
        machine.database.removeRemote(items, position: position)
    }

    func wasFormer(_ content: ContentID) throws -> Bool { machine.database.former.values.contains(content) }

    func itemCount() throws -> Int { machine.database.synced.count }

    var loggedDeletions: Int { machine.database.deletions.count }

    func itemsDeletedHere(limit: Int) throws -> Set<ItemID> {
        var items: Set<ItemID> = []
        for entry in machine.database.deletions {
            switch entry {
            case .item(let item): if machine.database.synced[item] != nil { items.insert(item) }
            case .inode(let key): items.formUnion(machine.database.synced(key: key).map(\.id))
            case .replacing: break
            }
        }
        return items
    }

    func log(_ deletion: DeletionEntry) {
        if !isDead { machine.database.deletions.insert(deletion) }
    }

    func hasSynced() throws -> Bool { !machine.database.synced.isEmpty }

    func syncedOrphans() throws -> [ItemID] { machine.database.syncedOrphans() }

    func unlog(_ deletions: [DeletionEntry]) throws {
        try canWrite()
        machine.database.deletions.subtract(deletions)
    }

    func makeDurable(_ places: [LocalPlace], _ folders: Set<InodeKey>) async -> Bool {
        do {
            try await pause(50...4_000)
            try canWrite()
        } catch {
            return false
        }
        machine.makeDiskDurable()
        return true
    }

    func record(_ record: PassRecord) async throws {
        for row in record.changes.upserts where row.content.kind == .package {
            try await pause(5...500)
            referToNewRevision(row, record.answered.last { $0.id == row.id } ?? machine.database.remote[row.id])
        }
        try await pause(50...4_000)
        // A disk that writes slowly: a connection may be lost, and the next one be there, before this has ended.
        if world.isTroubled, world.random.happens(2) { try await pause(200_000...3_000_000) }
        for folder in record.folders.sorted() { restoreTime(of: folder, record) }
        try canWrite()
        machine.makeDiskDurable()
        var changes = record.changes
        changes.upserts = changes.upserts.map(corrected)
        machine.database.apply(changes, remote: record.answered, answered: answered, manifests: record.manifests)
        forgetUnpopulated(changes.removals.filter { id in !changes.upserts.contains { $0.id == id } })
        populateAdopted(changes.upserts)
        answered = nil
        world.note("\(machine.name) writes down \(SimNote(changes))")
        try await pause(5...200)
        machine.database.deletions.subtract(record.deletions.map { .item($0) })
        machine.makeDatabaseDurable()
    }

    private func restoreTime(of folder: InodeKey, _ record: PassRecord) {
        let fresh = record.changes.upserts.last { $0.content == .folder && $0.local?.key == folder }
        let row = fresh ?? machine.database.synced(key: folder).first { $0.content == .folder }
        if folder != rootKey, let row { machine.disk[SimDisk.number(folder)]?.modified = row.attributes.modified }
    }

    // MARK: The backing tree

    func forEachEntry(
        of folder: InodeKey,
        unless isPassedOver: (Name, LocalKind) throws -> Bool,
        _ body: (Name, LocalState?) throws -> Void
    ) throws {
        try alive()
        if machine.diskFails() { throw Errno.ioError }
        guard let inode = machine.disk[SimDisk.number(folder)], inode.kind == .folder else { throw SimFailure.dead }
        // The names are read first, and looked at one after the other: programs may act in between.
        let kinds = inode.entries.mapValues { machine.disk[$0]?.kind }
        for (name, kind) in kinds.sorted(by: { $0.key < $1.key }) {
            if let kind, try isPassedOver(name, kind) { continue }
            machine.actMeanwhile()
            let state = machine.disk.entry(LocalPlace(folder: folder, name: name)).flatMap { seen($0, name) }
            machine.actMeanwhile()
            try alive()
            try body(name, state)
        }
    }

    func stage(_ remote: RemoteItem) async throws -> String {
        try await pause(20...2_000)
        try canWrite()
        if case .file(let file) = remote.content, file.isPackage { return try await stagePackage(remote, file) }
        let name = newStage(placeholder(for: remote))
        if let number = machine.disk.staging[name] { noteUnpopulated(remote, number) }
        return name
    }

    /// As it appears without its content.
    func placeholder(for remote: RemoteItem) -> SimInode {
        let attributes = remote.attributes
        var inode = SimInode(
            kind: .file,
            mode: attributes.mode,
            extended: attributes.extended,
            modified: attributes.modified,
            changed: SimDisk.tick(machine.timeOfDay)
        )
        switch remote.content {
        case .folder: inode.kind = .folder
        case .symlink(let target):
            inode.kind = .symlink
            inode.target = target
            inode.mode = 0o777
        case .file(let file):
            guard file.size > 0 || file.content == nil else { break }
            inode.placeholder = Placeholder(
                revision: file.revision,
                generation: world.random.next(),
                size: file.size,
                modified: attributes.modified,
                mode: attributes.mode,
                wasAnnounced: remote.isAnnounced
            )
        }
        return inode
    }

    func bring(_ arriving: [RemoteItem]) async -> [ItemID: String] {
        let wanted = arriving.filter { _ in world.random.below(3) == 0 }
        guard !wanted.isEmpty else { return [:] }
        do {
            let tokens = try await request { cloud in
                try wanted.map { item in try item.content.revision.flatMap { try cloud.tokens(of: $0) } }
            }
            guard !machine.isDiskFull, !machine.diskFails() else { return [:] }
            var staged: [ItemID: String] = [:]
            for case (let item, let tokens?) in zip(wanted, tokens) {
                staged[item.id] = newStage(whole(tokens, item.attributes))
                world.count(.arrivals)
            }
            machine.makeDiskDurable()
            return staged
        } catch {
            return [:]
        }
    }

    func wholeContent(_ wanted: WantedContent) async -> WholeContent {
        if hasWriter(wanted.evidence.key) {
            world.count(.busy)
            synchronizer.wait(wanted.works, forWriterOf: wanted.evidence.key)
            return .not(.later(.seconds(5)))
        }
        do {
            if wanted.file.isPackage { return try await wholePackage(wanted) }
            let tokens = try await request { try $0.tokens(of: wanted.file.revision) }
            guard let tokens else { return .not(.later(.seconds(1))) }
            if machine.isDiskFull || machine.diskFails() { return .not(.failed) }
            return .staged(newStage(whole(tokens, wanted.remote.attributes)))
        } catch {
            return .not(.failed)
        }
    }

    private func whole(_ tokens: [UInt64], _ attributes: ItemAttributes) -> SimInode {
        SimInode(
            kind: .file,
            tokens: tokens,
            mode: attributes.mode,
            extended: attributes.extended,
            modified: attributes.modified,
            changed: SimDisk.tick(machine.timeOfDay)
        )
    }

    func newStagedName() -> String { "taken-\(world.random.next())" }

    func discard(_ staged: String) {
        appearing = appearing.filter { $0.value != staged }
        guard !isDead, let number = machine.disk.staging.removeValue(forKey: staged) else { return }
        machine.disk.drop(number)
        noteDiscarded(number)
    }

    func perform(_ mutation: Mutation, at path: ItemPath) async -> Result<MutationResult, MutationFailure>? {
        do { try await pause(10...2_000) } catch { return .failure(.stale) }
        if isClaimed(path) {
            world.note("\(machine.name): \(SimNote(mutation)) at \(path): claimed")
            return nil
        }
        let result = Result { () throws(MutationFailure) in
            if machine.diskFails() { throw .system(.ioError) }
            return try act(mutation)
        }
        world.note("\(machine.name): \(SimNote(mutation)) at \(path): \(SimNote(result))")
        if case .success = result { judge(mutation, path) }
        do { try await pause(5...1_000) } catch { return .failure(.stale) }
        return result
    }

    /// Where all changes come from, nothing is put right.
    private func judge(_ mutation: Mutation, _ path: ItemPath) {
        guard world.settings.has(.alone), machine.number == 1, world.now > SimPlan.secondAuthor else { return }
        if case .setAttributes = mutation { return }
        world.fail("\(machine.name): \(SimNote(mutation)) at \(path), where nobody else has changed anything")
    }

    func perform(_ acts: [(Mutation, ItemPath)]) async -> [Result<MutationResult, MutationFailure>?] {
        var results: [Result<MutationResult, MutationFailure>?] = []
        for (mutation, path) in acts { results.append(await perform(mutation, at: path)) }
        return results
    }

    func noteRevision(_ revision: RevisionID, of item: ItemID) {}

    // MARK: Programs

    func hasWriter(_ key: InodeKey) -> Bool {
        ([key] + (packageFiles[key] ?? [])).contains { machine.disk[SimDisk.number($0)]?.writers ?? 0 > 0 }
    }

    func collectDirty(_ key: InodeKey) {
        guard !isDead else { return }
        for file in [key] + (packageFiles[key] ?? []) { machine.disk[SimDisk.number(file)]?.isDirty = false }
    }

    // MARK: Contents and the cloud

    static var smallFile: Int64 { 3 * SimContent.tokenBytes }
    static var smallArrival: Int64 { 2 * SimContent.tokenBytes }

    func read(_ files: [WantedFile]) async -> [Result<ReadContent, ReadFailure>] {
        var results: [Result<ReadContent, ReadFailure>] = []
        for file in files { results.append(await read(file)) }
        return results
    }

    private func read(_ file: WantedFile) async -> Result<ReadContent, ReadFailure> {
        do {
            try await pause(10...500)
            if file.state.kind == .package { return try await readPackage(file) }
            guard let number = machine.disk.entry(file.place), let before = machine.disk.state(number),
                before.key == file.state.key, !before.isDataless
            else { return .failure(.changed) }
            if machine.diskFails() { return .failure(.unreadable("the disk fails")) }
            // Programs may write while it is read.
            let tokens = machine.disk[number]?.tokens ?? []
            try await pause(10...1_000)
            guard machine.disk.state(number) == before, machine.disk[number]?.tokens == tokens else {
                return .failure(.changed)
            }
            return .success(
                ReadContent(
                    manifest: SimContent.manifest(tokens),
                    content: SimContent.content(tokens),
                    state: before,
                    chunks: Dictionary(uniqueKeysWithValues: tokens.map { (SimContent.chunk($0), [UInt8($0 & 0xFF)]) })
                )
            )
        } catch {
            return .failure(.changed)
        }
    }

    func beginTransfer(_ file: WantedFile, of item: ItemID, _ works: Set<EngineCore.Work>) {
        world.count(.largeTransfers)
        world.task { [self] in
            var content: ReadContent?
            var verdict = EngineCore.Verdict.failed
            switch await read(file) {
            case .failure(.changed): verdict = .later(.milliseconds(500))
            case .failure(.unreadable): verdict = .failed
            case .failure(.lacking):
                if !isDead { synchronizer.noteLacking(file) }
                verdict = .again
            case .success(var read):
                do {
                    for token in read.manifest.entries where read.chunks[token.chunk] != nil {
                        try await request { try $0.add([token.chunk]) }
                    }
                    read.chunks = [:]
                    content = read
                    verdict = .again
                } catch SimFailure.quota {
                    verdict = .failed
                } catch {
                    verdict = .later(.seconds(5))
                }
            }
            if !isDead { synchronizer.transferEnded(item, at: file.place, works, content: content, verdict) }
        }
    }

    func missing(_ chunks: [ChunkID]) async throws -> Set<ChunkID> { try await request { try $0.missing(chunks) } }

    func upload(_ chunks: [(id: ChunkID, bytes: [UInt8])]) async throws {
        try await request { try $0.add(chunks.map(\.id)) }
    }

    func commit(
        _ operations: [ItemOperation],
        chunks: [(id: ChunkID, bytes: [UInt8])]
    ) async throws -> [OperationOutcome] {
        let clock = wallClock
        let (outcomes, answered) = try await request { cloud in
            let (outcomes, head) = try cloud.commit(
                operations,
                chunks: chunks.map(\.id),
                by: self.machine.credentials,
                deviceClock: clock
            )
            for (operation, outcome) in zip(operations, outcomes) {
                self.world.note("\(self.machine.name) sends \(SimNote(operation)): \(SimNote(outcome))")
            }
            return (outcomes, head)
        }
        if answered.counter > self.answered?.counter ?? 0 { self.answered = answered }
        return outcomes
    }

    func isOfConnection(_ error: any Error) -> Bool { error is SimFailure }

    func connectionFailed(_ error: any Error) {
        noteLost(error)
    }
}
