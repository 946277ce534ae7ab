import EngineCore
import Reconciliation
import UbiquityModel

import struct SystemPackage.Errno

/// Packages as the device service has them: to the disk they are folders (`EngineView+Packages`, `ContainerEngine+Packages`).
extension SimDevice {
    static let packageExtension = "rtfd"

    /// A folder that is a package is seen as one.
    func seen(_ number: UInt64, _ name: Name) -> LocalState? {
        guard let state = machine.disk.state(number), state.kind == .folder, number != SimDisk.root else {
            return machine.disk.state(number)
        }
        guard marks.maybe(state.key, name),
            marks.isPackage(state.key, name, hasAttribute: false, rows: machine.database.synced(key: state.key))
        else {
            if marks.unmark(state.key) { synchronizer.scanFormerPackage(state.key) }
            return state
        }
        marks.mark(state.key)
        machine.disk.walk(number, .root) { _, place, element in
            guard machine.disk[element]?.kind == .folder else { return }
            folders.add(SimDisk.key(element), parent: place.folder, name: place.name)
        }
        let files = machine.disk.files(of: number)
        packageFiles[state.key] = files.map { SimDisk.key($0.number) }
        let linked = files.filter { machine.disk[$0.number]?.links ?? 0 > 1 }
        synchronizer.noteLinked(linked.map { SimDisk.key($0.number) }, of: state.key)
        return machine.disk.packageState(number)
    }

    func package(around folder: InodeKey) throws -> LocalPlace? {
        var suspects: [(key: InodeKey, place: LocalPlace)] = []
        var next = folder
        for _ in 0...folders.count {
            guard let entry = folders.entry(next) else { break }
            if marks.maybe(next, entry.name) {
                suspects.append((next, LocalPlace(folder: entry.parent, name: entry.name)))
            }
            next = entry.parent
        }
        for (key, place) in suspects.reversed() {
            let rows = machine.database.synced(key: key)
            guard marks.isPackage(key, place.name, hasAttribute: false, rows: rows) else { continue }
            marks.mark(key)
            return place
        }
        return nil
    }

    func isPackage(_ number: UInt64) -> Bool { marks.isMarked(SimDisk.key(number)) }

    // MARK: Sending

    /// What a package has of which the content is not here, is sent by what the cloud has of it.
    func readPackage(_ file: WantedFile) async throws -> Result<ReadContent, ReadFailure> {
        guard let number = machine.disk.entry(file.place), seen(number, file.place.name) == file.state else {
            return .failure(.changed)
        }
        if machine.diskFails() { return .failure(.unreadable("the disk fails")) }
        let package = machine.disk.package(number)
        var tokens = [world.indexes.token(package)]
        var here: Set<UInt64> = [tokens[0]]
        var absent: Set<ChunkID> = []
        for element in machine.disk.files(of: number) {
            guard let inode = machine.disk[element.number] else { continue }
            if let placeholder = inode.placeholder {
                let (whole, absence) = try await contents(of: placeholder)
                if let whole, placeholder.offset == nil, SimContent.size(of: whole) != placeholder.size {
                    // It grew or shrank between its announcement and its sending.
                    if machine.disk[element.number]?.placeholder == placeholder {
                        machine.disk[element.number]?.placeholder?.size = SimContent.size(of: whole)
                        machine.disk[element.number]?.changed = SimDisk.tick(machine.timeOfDay)
                    }
                    synchronizer.noteOtherContents(in: file.place)
                    return .failure(.changed)
                }
                if let part = placeholder.part(of: whole) {
                    tokens += part
                    absent.formUnion(part.map(SimContent.chunk))
                } else if placeholder.offset == nil, absence != nil {
                    takeOut(element, placeholder)
                    synchronizer.noteOtherContents(in: file.place)
                    return .failure(.changed)
                } else {
                    return .failure(.lacking)
                }
            } else {
                tokens += inode.tokens
                here.formUnion(inode.tokens)
            }
        }
        // Programs may write while it is read.
        try await pause(10...1_000)
        guard machine.disk.entry(file.place) == number, let after = seen(number, file.place.name),
            LocalEvidence(file.state).describes(after), SimContent.size(of: tokens) == after.size
        else { return .failure(.changed) }
        return .success(
            ReadContent(
                manifest: SimContent.manifest(tokens),
                content: SimContent.content(tokens),
                state: after,
                chunks: Dictionary(
                    tokens.filter(here.contains).map { (SimContent.chunk($0), [UInt8($0 & 0xFF)]) },
                    uniquingKeysWith: { first, _ in first }
                ),
                absent: absent.subtracting(here.map(SimContent.chunk))
            )
        )
    }

    /// The tokens of the revision that a placeholder stands for, or a part of. What was agreed on with a server that knows nothing of it any
    /// more is still known here.
    private func contents(of placeholder: Placeholder) async throws -> ([UInt64]?, ContentAbsence?) {
        if placeholder.offset != nil, let known = formerTokens(of: placeholder.revision) { return (known, nil) }
        return try await request { cloud in
            let tokens = try cloud.tokens(of: placeholder.revision)
            return (tokens, tokens == nil ? cloud.absence(of: placeholder.revision) : nil)
        }
    }

    func formerTokens(of revision: RevisionID) -> [UInt64]? {
        let rows = machine.database.synced(revision: revision).compactMap { row -> ContentID? in
            guard case .file(let file) = row.content, file.isPackage else { return nil }
            return file.content
        }
        return (rows.first ?? machine.database.former[revision]).flatMap { machine.database.manifests[$0] }?.entries.map
        {
            SimContent.token($0.chunk)
        }
    }

    /// Nobody will ever have it, and with it the package could not be sent, nor leave.
    private func takeOut(_ element: SimDisk.Element, _ placeholder: Placeholder) {
        guard machine.disk.entry(element.place) == element.number,
            machine.disk[element.number]?.placeholder == placeholder
        else { return }
        machine.disk.unlink(element.place, machine.timeOfDay)
    }

    // MARK: Appearing and replacing

    /// Long manifests are not told, but asked for.
    private func package(of file: FileContent) async throws -> SimPackage {
        var first = file.content.flatMap { machine.database.manifests[$0]?.entries.first }.map {
            SimContent.token($0.chunk)
        }
        if first == nil { first = try await request { try $0.tokens(of: file.revision) }?.first }
        guard let package = first.flatMap(world.indexes.package) else { throw Errno.resourceTemporarilyUnavailable }
        return package
    }

    private func placeholder(
        _ element: SimPackage.Element,
        _ start: Int,
        _ revision: RevisionID
    ) -> Placeholder {
        guard case .file(let count, let modified) = element.kind else { preconditionFailure("files only") }
        return Placeholder(
            revision: revision,
            generation: world.random.next(),
            size: Int64(count) * SimContent.tokenBytes,
            modified: modified,
            mode: element.mode,
            offset: Int64(start) * SimContent.tokenBytes
        )
    }

    func stagePackage(_ remote: RemoteItem, _ file: FileContent) async throws -> String {
        let package = try await package(of: file)
        let number = machine.disk.make(package, remote.attributes, at: SimDisk.tick(machine.timeOfDay)) {
            .dataless(placeholder($0, $1, file.revision))
        }
        marks.noteMade(SimDisk.key(number))
        return newStage(number)
    }

    /// Files that did not change are linked, those that were here are brought here, of all others the content comes later.
    func wholePackage(_ wanted: WantedContent) async throws -> WholeContent {
        let tokens = try await request { try $0.tokens(of: wanted.file.revision) }
        guard let tokens else { return .not(.later(.seconds(1))) }
        if machine.isDiskFull || machine.diskFails() { return .not(.failed) }
        guard let package = tokens.first.flatMap(world.indexes.package), let number = machine.disk.entry(wanted.place),
            let state = seen(number, wanted.place.name), state.kind == .package
        else { return .not(.later(.seconds(1))) }
        let isAsAgreed = wanted.row?.content.kind == .package && wanted.evidence.describes(state)
        if wanted.row?.content.kind == .package, !isAsAgreed { return .not(.again) }
        let old = isAsAgreed ? machine.disk.elements(of: number) : []
        let known = Dictionary(uniqueKeysWithValues: old.map { ($0.path, $0.number) })
        let isWhole = isAsAgreed && state.facts?.datalessElements == 0
        var sources: [ItemPath: SimDisk.Source] = [:]
        for (element, start) in package.files {
            let content = Array(tokens[start..<start + element.tokenCount])
            let wasHere = known[element.path].map { machine.disk[$0]?.placeholder == nil } ?? isWhole
            if let same = linked(element, content, old, known) {
                sources[element.path] = .linked(same)
            } else {
                sources[element.path] =
                    wasHere ? .whole(content) : .dataless(placeholder(element, start, wanted.file.revision))
            }
        }
        let time = SimDisk.tick(machine.timeOfDay)
        let staged = machine.disk.make(package, wanted.remote.attributes, at: time) { element, _ in
            sources[element.path] ?? .whole([])
        }
        machine.makeDiskDurable()
        marks.noteMade(SimDisk.key(staged))
        return .staged(newStage(staged))
    }

    private func linked(
        _ element: SimPackage.Element,
        _ content: [UInt64],
        _ old: [SimDisk.Element],
        _ known: [ItemPath: UInt64]
    ) -> UInt64? {
        let same = old.map(\.number).filter { number in
            guard let inode = machine.disk[number], case .file(_, let modified) = element.kind else { return false }
            return inode.kind == .file && inode.placeholder == nil && inode.tokens == content
                && inode.modified == modified && inode.mode == element.mode && inode.extended == element.extended
        }
        return same.first { known[element.path] == $0 } ?? same.first
    }

    // MARK: Acts

    func replacePackage(
        _ staged: String,
        _ place: LocalPlace,
        _ evidence: LocalEvidence,
        isPatient: Bool
    ) throws(MutationFailure) -> MutationResult {
        guard let number = machine.disk.staging[staged] else { throw .stale }
        let old = try heldPackage(place, evidence, isPatient: isPatient)
        machine.disk.staging[staged] = nil
        machine.disk.publish(number, at: place, machine.timeOfDay)
        folders.remove(SimDisk.key(old))
        folders.move(SimDisk.key(number), parent: place.folder, name: place.name)
        return MutationResult(state: seen(number, place.name))
    }

    func removePackage(
        _ place: LocalPlace,
        _ evidence: LocalEvidence,
        isPatient: Bool
    ) throws(MutationFailure) -> MutationResult {
        _ = try heldPackage(place, evidence, isPatient: isPatient)
        machine.disk.unlink(place, machine.timeOfDay)
        return MutationResult(state: nil)
    }

    /// If it is as expected and nobody uses it: whoever reads in it is waited for, but not for ever.
    private func heldPackage(
        _ place: LocalPlace,
        _ evidence: LocalEvidence,
        isPatient: Bool
    ) throws(MutationFailure) -> UInt64 {
        guard let number = machine.disk.entry(place), let state = seen(number, place.name), state.kind == .package,
            evidence.describes(state)
        else { throw .stale }
        let isWritten = machine.disk.files(of: number).contains { machine.disk[$0.number]?.writers ?? 0 > 0 }
        if isWritten || isPatient && world.random.happens(10) {
            world.count(.busy)
            throw .busy
        }
        return number
    }

    /// What came of an act, in terms of packages where it was done to one.
    func translated(_ state: LocalState?, at place: LocalPlace) -> LocalState? {
        guard let state, state.kind == .folder else { return state }
        return seen(SimDisk.number(state.key), place.name)
    }

    // MARK: Contents

    /// All of a package.
    func fetchPackage(_ place: LocalPlace, _ key: InodeKey) {
        let newsCount = synchronizer.tracker.newsCount
        world.task { [self] in
            var failure: Fill?
            var isSettled = false
            for element in machine.disk.elements(of: SimDisk.number(key)) {
                guard let placeholder = machine.disk[element.number]?.placeholder else { continue }
                let outcome = await fillOne(element.number)
                if isDead { return }
                if outcome != .here { failure = failure ?? outcome }
                guard case .absent = outcome, placeholder.offset == nil else { continue }
                takeOut(element, placeholder)
                isSettled = true
            }
            synchronizer.tracker.fetching.remove(key)
            // Who waits for all of it does not ask again because a part could not be had.
            if failure == nil { look(atPackageOf: key) } else { noteContent(ofPackage: key) }
            guard let number = machine.disk.entry(place), SimDisk.key(number) == key else { return }
            if isSettled { return synchronizer.noteOtherContents(in: place) }
            guard case .absent(let absence)? = failure else { return }
            let waiting = synchronizer.tracker.noteUndeliverable(key, absence: absence, askedAt: newsCount)
            for work in waiting { synchronizer.handle(.woken(work)) }
        }
    }

    /// A file of a package has become whole: others may follow.
    func noteFilled(elementOf revision: RevisionID) {
        later(400_000...600_000) { device in
            for row in device.machine.database.synced(revision: revision) where row.content.kind == .package {
                if let key = row.local?.key { device.look(atPackageOf: key) }
            }
        }
    }

    /// Writes down whether all of a package is here, and who waits for that looks.
    func look(atPackageOf key: InodeKey) {
        noteContent(ofPackage: key)
        for work in (synchronizer.tracker.waitingForContent.removeValue(forKey: key) ?? []).sorted() {
            synchronizer.handle(.woken(work))
        }
    }

    private func noteContent(ofPackage key: InodeKey) {
        for var row in machine.database.synced(key: key) where row.content.kind == .package {
            guard let local = row.local, let place = synchronizer.tracker.currentPlace(of: key),
                let number = machine.disk.entry(place), let state = seen(number, place.name), state.kind == .package,
                local.describes(state)
            else { continue }
            row.local = LocalEvidence(state)
            machine.database.apply(SyncedChanges(upserts: [row]))
        }
    }

    /// A package was sent as a new revision while not all of it was here: what stands for the rest stands for that of the new one from here
    /// on.
    /// - Parameter remote: what the cloud says of it: what it has not kept as a revision of its own, nothing may depend on.
    func referToNewRevision(_ row: SyncedItem, _ remote: RemoteItem?) {
        guard case .file(let file) = row.content, file.isPackage, remote?.content == row.content, let local = row.local,
            local.isDataless,
            let place = (try? synchronizer.tracker.ownPlace(of: row)) ?? nil,
            let number = machine.disk.entry(place), let state = seen(number, place.name), local.describes(state),
            state.size == file.size
        else { return }
        var start = SimContent.tokenBytes
        for element in machine.disk.files(of: number) {
            guard let inner = machine.disk.state(element.number) else { continue }
            defer { start += inner.size }
            guard inner.isDataless, machine.disk[element.number]?.writers == 0 else { continue }
            machine.disk[element.number]?.placeholder?.revision = file.revision
            machine.disk[element.number]?.placeholder?.offset = start
        }
    }
}

extension Placeholder {
    /// Its tokens in those of the revision's whole content; `nil` if that is no such content.
    func part(of whole: [UInt64]?) -> [UInt64]? {
        guard let whole else { return nil }
        guard let offset else { return whole }
        let start = Int(offset / SimContent.tokenBytes)
        let end = start + Int(size / SimContent.tokenBytes)
        return start >= 0 && end <= whole.count ? Array(whole[start..<end]) : nil
    }
}
