import EngineCore
import Reconciliation
import UbiquityModel

/// What must hold in the end: all equal, nothing pending, no byte lost.
struct SimJudge {
    let world: SimWorld

    /// Nothing waits anywhere.
    var isSettled: Bool {
        world.machines.allSatisfy { machine in
            guard let device = machine.device else { return false }
            let core = device.synchronizer.core
            return device.isDrained && core.isSettledButForWaiting
                && machine.database.position == world.cloud.head
                && machine.disk.inodes.values.allSatisfy { $0.writers == 0 }
                && (core.isSettled || isWaitingForNobody(machine, core))
        }
    }

    /// All that it waits for is what ghosts went over, or went away from: that is told when their content comes, and nobody has that.
    private func isWaitingForNobody(_ machine: SimMachine, _ core: EngineCore) -> Bool {
        let ghosts = ghosts(of: machine)
        let held = placesOfGhosts(machine, ghosts)
        let folders = foldersOfGhosts(machine, ghosts)
        return !held.isEmpty
            && core.isAllUnfinished { work in
                switch work {
                case .place(let place): held.contains(place) || folders.contains(place.folder)
                case .item(let item): isAmong(ghosts, item, machine)
                }
            }
    }

    /// What cannot be told of is asked for again and again, and so is what a ghost went over.
    private func isAmong(_ ghosts: Set<UInt64>, _ item: ItemID, _ machine: SimMachine) -> Bool {
        guard let row = machine.database.synced[item], let device = machine.device else { return false }
        if let key = row.local?.key, ghosts.contains(SimDisk.number(key)) { return true }
        let places = [
            row.local.flatMap { device.synchronizer.tracker.currentPlace(of: $0.key) }, placeOf(row, machine),
        ]
        return places.contains { $0.flatMap { machine.disk.entry($0) }.map(ghosts.contains) ?? false }
    }

    /// Where ghosts are, and where the items that they were had been before.
    private func placesOfGhosts(_ machine: SimMachine, _ ghosts: Set<UInt64>) -> Set<LocalPlace> {
        var places: Set<LocalPlace> = []
        guard !ghosts.isEmpty else { return places }
        machine.disk.walk { _, place, number in if ghosts.contains(number) { places.insert(place) } }
        let own = ghosts.flatMap { machine.database.synced(key: SimDisk.key($0)) }
        places.formUnion(own.compactMap { placeOf($0, machine) })
        // What they were exchanged with came from its own place.
        let others = places.compactMap { machine.disk.entry($0) }.flatMap {
            machine.database.synced(key: SimDisk.key($0))
        }
        places.formUnion(others.compactMap { placeOf($0, machine) })
        return places
    }

    /// Packages that cannot be told of, and the folders in them.
    private func foldersOfGhosts(_ machine: SimMachine, _ ghosts: Set<UInt64>) -> Set<InodeKey> {
        let packages = ghosts.filter { machine.disk[$0]?.kind == .folder }
        let inner = packages.flatMap { machine.disk.elements(of: $0) }.map(\.number)
        return Set((packages + inner.filter { machine.disk[$0]?.kind == .folder }).map(SimDisk.key))
    }

    private func placeOf(_ row: SyncedItem, _ machine: SimMachine) -> LocalPlace? {
        let folder =
            row.place.parent == .root
            ? SimDisk.key(SimDisk.root) : machine.database.synced[row.place.parent]?.local?.key
        return folder.map { LocalPlace(folder: $0, name: row.place.name) }
    }

    /// Worlds have a hundred, and those with the most disasters a thousand.
    private static let mostPasses = 3_000

    func judge() {
        guard world.failure == nil else { return }
        do {
            guard isSettled else { return world.fail("not settled: \(unsettled())") }
            let passes = world.counts[.passes] ?? 0
            guard passes < Self.mostPasses else {
                return world.fail("\(passes) passes: something is tried without end")
            }
            try compareTrees()
            try balance()
            try discard()
            let conflicts = try world.cloud.conflicts()
            for _ in 0..<conflicts { world.count(.conflicts) }
            if conflicts > 0, world.settings.has(.alone) {
                world.fail("there are conflicts, although nobody else was there")
            }
        } catch {
            world.fail("the cloud does not answer: \(error)")
        }
    }

    private func unsettled() -> String {
        world.machines.map { machine in
            guard let device = machine.device else { return "\(machine.name) is dead" }
            let core = device.synchronizer.core
            let work = core.unfinished.sorted().prefix(5).map { describe($0, device) }
            return """
                \(machine.name): \(core.connection), waiting \(work), failed \(core.unfinished.filter(core.hasFailed).count), \
                running \(device.synchronizer.isRunningPass), drained \(device.isDrained)
                """
        }.joined(separator: "; ")
    }

    private func describe(_ work: EngineCore.Work, _ device: SimDevice) -> String {
        switch work {
        case .place(let place): device.path(of: place)?.description ?? "?/\(place.name)"
        case .item(let item): "item \(device.synchronizer.remotePath(of: item)) \(item)"
        }
    }

    // MARK: All equal

    /// What a tree shows at a path.
    private struct Shown: Equatable, CustomStringConvertible {
        var kind: LocalKind
        var tokens: [UInt64]
        var target: [UInt8]
        var mode: UInt16
        var extended: [[UInt8]: [UInt8]]

        var description: String { "\(kind) \(tokens) \(String(mode, radix: 8)) \(extended.count)" }
    }

    private func compareTrees() throws {
        let expected = try cloudTree()
        for machine in world.machines {
            let ghosts = ghosts(of: machine)
            let found = try tree(of: machine, without: ghosts)
            let held = heldPaths(machine, ghosts)
            for path in Set(expected.keys).union(found.keys).sorted() where expected[path] != found[path] {
                if held.contains(path) { continue }
                let there = expected[path].map(\.description) ?? "nothing"
                let here = found[path].map(\.description) ?? "nothing"
                return world.fail("\(path): the cloud has \(there), \(machine.name) has \(here)")
            }
            let parked = (machine.device?.synchronizer.core.parkedWork ?? []).filter { !waitsForNobody($0, machine) }
            if !parked.isEmpty, ghosts.isEmpty { return world.fail("\(machine.name) has parked \(parked)") }
            let pending = machine.database.pending.filter { !waitsForNobody(.item($0), machine) }
            if pending.count > ghosts.count {
                return world.fail(
                    "\(machine.name): \(pending.count) items differ from what was agreed on"
                )
            }
        }
    }

    /// Where nothing can be told yet, since a ghost went over it or away from it.
    private func heldPaths(_ machine: SimMachine, _ ghosts: Set<UInt64>) -> Set<ItemPath> {
        guard let device = machine.device, device.synchronizer.core.hasUnfinished else { return [] }
        return Set(placesOfGhosts(machine, ghosts).compactMap { device.path(of: $0) })
    }

    /// Placeholders of what a restored server has lost, with the content, or a device that is no more: they stay, and their user is told.
    private func ghosts(of machine: SimMachine) -> Set<UInt64> {
        var ghosts: Set<UInt64> = []
        for (number, inode) in machine.disk.inodes {
            guard let placeholder = inode.placeholder,
                ((try? world.cloud.tokens(of: placeholder.revision)) ?? nil) == nil
            else { continue }
            if placeholder.offset != nil {
                // In a package, that says of itself what it lacks.
                let isLost =
                    world.counts[.serverRestored] != nil && machine.device.map { !canCome(placeholder, $0) } ?? false
                if isLost { ghosts.insert(number) }
                continue
            }
            if machine.database.remote(revision: placeholder.revision).map(isOfNobody) ?? false {
                ghosts.insert(number)
                continue
            }
            guard world.counts[.serverRestored] != nil else { continue }
            guard let row = machine.database.synced(key: SimDisk.key(number)).first else {
                ghosts.insert(number)
                continue
            }
            guard machine.database.remote[row.id]?.isAnnounced ?? true else { continue }
            // Who has it whole would have brought it back.
            let isWholeSomewhere = world.machines.contains { other in
                guard let own = other.database.synced[row.id], let key = own.local?.key,
                    let inode = other.disk[SimDisk.number(key)]
                else { return false }
                // Exchanged with another: its content has gone on as that one's.
                let folder = other.database.synced[own.place.parent]?.local?.key ?? SimDisk.key(SimDisk.root)
                let isThere = other.disk.entry(LocalPlace(folder: folder, name: own.place.name)) == SimDisk.number(key)
                return isThere && inode.placeholder == nil
            }
            if !isWholeSomewhere { ghosts.insert(number) }
        }
        return ghosts.union(ghostPackages(of: machine))
    }

    /// Packages that lack what a restored server has lost, and nobody has all of them.
    private func ghostPackages(of machine: SimMachine) -> Set<UInt64> {
        guard world.counts[.serverRestored] != nil, let device = machine.device else { return [] }
        var packages: Set<UInt64> = []
        machine.disk.walk { _, place, number in
            guard let state = device.seen(number, place.name), state.kind == .package, state.lacksContent else {
                return
            }
            let lost = machine.disk.files(of: number).compactMap { machine.disk[$0.number]?.placeholder }.filter {
                !canCome($0, device)
            }
            let tokens = lost.flatMap { $0.part(of: device.formerTokens(of: $0.revision)) ?? [] }
            let items = machine.database.synced(key: state.key).map(\.id)
            if !lost.isEmpty, !isWholeElsewhere(items, Set(tokens), than: machine) { packages.insert(number) }
        }
        return packages
    }

    private func canCome(_ placeholder: Placeholder, _ device: SimDevice) -> Bool {
        let sent = (try? world.cloud.tokens(of: placeholder.revision)) ?? nil
        if placeholder.part(of: sent) != nil { return true }
        guard let former = placeholder.part(of: device.formerTokens(of: placeholder.revision)) else { return false }
        return (try? world.cloud.missing(former.map(SimContent.chunk)).isEmpty) ?? false
    }

    /// Who has all that is lacking, and everything else, would have brought it back.
    private func isWholeElsewhere(_ items: [ItemID], _ lacking: Set<UInt64>, than machine: SimMachine) -> Bool {
        world.machines.contains { other in
            guard other !== machine, let device = other.device else { return false }
            return items.contains { item in
                guard let key = other.database.synced[item]?.local?.key,
                    let place = device.synchronizer.tracker.currentPlace(of: key),
                    let number = other.disk.entry(place), SimDisk.key(number) == key,
                    let state = device.seen(number, place.name)
                else { return false }
                let tokens = other.disk.files(of: number).flatMap { other.disk[$0.number]?.tokens ?? [] }
                return state.kind == .package && !state.lacksContent && lacking.isSubset(of: tokens)
            }
        }
    }

    /// Announced by a device whose disk became another's, or that was restored and did not hear at once that it is another one.
    private func isOfNobody(_ item: RemoteItem) -> Bool {
        item.isAnnounced && !world.machines.contains { $0.credentials.name == item.author }
    }

    /// It had been sent, and all that have it here had made room.
    private func isLost(_ item: RemoteItem) -> Bool {
        world.machines.allSatisfy { machine in
            guard let key = machine.database.synced[item.id]?.local?.key else { return true }
            return machine.disk[SimDisk.number(key)]?.placeholder != nil
        }
    }

    private func isLostWithServer(_ item: RemoteItem) -> Bool {
        guard case .file(let file) = item.content, file.content == nil else { return false }
        return world.counts[.serverRestored] != nil && isLost(item)
    }

    private func waitsForNobody(_ work: EngineCore.Work, _ machine: SimMachine) -> Bool {
        guard case .item(let item) = work, let remote = machine.database.remote[item] else { return false }
        return isOfNobody(remote) || isLostWithServer(remote)
    }

    private func tree(of machine: SimMachine, without ghosts: Set<UInt64>) throws -> [ItemPath: Shown] {
        var result: [ItemPath: Shown] = [:]
        var unreadable: [ItemPath] = []
        var package: ItemPath?
        machine.disk.walk { path, place, number in
            // What lies in a package is its content.
            if let package, path.isInside(package) { return }
            guard let inode = machine.disk[number], let state = machine.device?.seen(number, place.name) else { return }
            if state.kind == .package { package = path }
            guard !ghosts.contains(number), !staysHere(path, place, state, machine) else { return }
            var tokens = inode.tokens
            if let placeholder = inode.placeholder {
                if let known = placeholder.part(of: (try? world.cloud.tokens(of: placeholder.revision)) ?? nil) {
                    tokens = known
                } else {
                    unreadable.append(path)
                }
            }
            if state.kind == .package {
                if let known = content(ofPackage: number, machine) { tokens = known } else { unreadable.append(path) }
            }
            result[path] = Shown(
                kind: state.kind,
                tokens: tokens,
                target: inode.target,
                mode: inode.kind == .symlink ? 0o777 : state.mode,
                extended: inode.extended
            )
        }
        for path in unreadable { world.fail("\(path) on \(machine.name): its content is nowhere") }
        return result
    }

    /// `nil` if something in it is nowhere.
    private func content(ofPackage number: UInt64, _ machine: SimMachine) -> [UInt64]? {
        var tokens = [world.indexes.token(machine.disk.package(number))]
        for element in machine.disk.files(of: number) {
            guard let inode = machine.disk[element.number] else { continue }
            guard let placeholder = inode.placeholder else {
                tokens += inode.tokens
                continue
            }
            guard let part = placeholder.part(of: (try? world.cloud.tokens(of: placeholder.revision)) ?? nil) else {
                return nil
            }
            tokens += part
        }
        return tokens
    }

    /// It is ignored or has a name that is not synced, and is no item.
    private func staysHere(_ path: ItemPath, _ place: LocalPlace, _ state: LocalState, _ machine: SimMachine) -> Bool {
        let rows = machine.database.synced(key: state.key)
        // Each of several names is an item, or none.
        let isItem = rows.contains { state.linkCount == 1 || placeOf($0, machine) == place }
        if !isItem, LocalOnly.reason(for: path) != nil || isSharedMemory(place, state, machine) {
            world.count(.leftToItself)
            return true
        }
        guard !isItem else { return false }
        return switch try? machine.device?.synchronizer.tracker.ruling(onUnsent: place, state) {
        case .ignored, .waits: true
        case .sent, nil: false
        }
    }

    private func isSharedMemory(_ place: LocalPlace, _ state: LocalState, _ machine: SimMachine) -> Bool {
        guard state.kind == .file, let name = LocalOnly.databaseOfSharedMemory(place.name),
            let database = machine.disk.entry(LocalPlace(folder: place.folder, name: name))
        else { return false }
        return machine.disk[database]?.kind == .file
    }

    private struct Twin: Hashable {
        var folder: ItemID
        var name: FoldedName

        init(_ place: Place) {
            folder = place.parent
            name = place.name.folded
        }
    }

    private func cloudTree() throws -> [ItemPath: Shown] {
        let items = try world.cloud.items().filter { !$0.isDeleted }
        let byID = Dictionary(uniqueKeysWithValues: items.map { ($0.id, $0) })
        var result: [ItemPath: Shown] = [:]
        var folded: Set<Twin> = []
        for item in items {
            // Programs may give an item the name of another that makes room.
            if TransitionalName.item(of: item.place.name) == item.id {
                world.fail("\(item.place.name) is still on its way")
            }
            var names = [item.place.name]
            var parent = item.place.parent
            while parent != .root {
                guard let folder = byID[parent], names.count < 1000 else {
                    return ["": "the cloud's \(item.place.name) lies in no folder"].reduce(into: [:]) { _, entry in
                        world.fail(entry.value)
                    }
                }
                names.append(folder.place.name)
                parent = folder.place.parent
            }
            var shown = Shown(
                kind: .folder,
                tokens: [],
                target: [],
                mode: item.attributes.mode,
                extended: item.attributes.extended
            )
            switch item.content {
            case .folder: break
            case .symlink(let target):
                shown.kind = .symlink
                shown.target = target
                shown.mode = 0o777
            case .file(let file):
                shown.kind = file.isPackage ? .package : .file
                shown.tokens = try world.cloud.tokens(of: file.revision) ?? []
                // Whoever was about to send it may have lost it with the server, or be no more.
                if isOfNobody(item) || isLostWithServer(item) { continue }
                if file.content == nil, world.counts[.serverRestored] == nil {
                    world.fail("\(item.place.name) is still announced only")
                }
            }
            if world.settings.isCaseInsensitive, !folded.insert(Twin(item.place)).inserted {
                world.fail("two names in the cloud differ from \(item.place.name) in case only")
            }
            let path = ItemPath(names.reversed())
            if result.updateValue(shown, forKey: path) != nil { world.fail("\(path) is two items in the cloud") }
        }
        return result
    }

    // MARK: No byte lost

    /// What nobody has removed may be a saved version, or recently deleted, and nothing else.
    private var mayOutliveOnlyAsSaved: Bool {
        // Of an exchange, or a file that was renamed over another, a device whose disk became another one may have sent half.
        if world.counts[.backupsRestored] != nil || world.counts[.disksCloned] != nil { return true }
        // Two that exchange the same files at the same time put a content back where both had seen it: that is no edit (architecture
        // section 5), and what the other one has put there stays.
        return world.counts[.exchanges, default: 0] > 1
    }

    /// What is kept no longer is gone from the cloud some day, and nothing else.
    private func discard() throws {
        guard world.failure == nil else { return }
        for revision in world.ledger.unseen.sorted() {
            world.ledger.destroy(try world.cloud.tokens(of: revision) ?? [])
        }
        try world.cloud.discard(.standard, after: .days(2))
        if !mayOutliveOnlyAsSaved, try !lost().isEmpty {
            world.count(.onlySaved)
            if world.settings.isStrict { try balance() }
        }
        if let failure = world.failure { return world.failAgain("days later: \(failure)") }
        try world.cloud.discard(.standard, after: .days(400))
        try compareTrees()
        if let item = try world.cloud.brokenItem() { world.fail("\(item.place.name) is not whole any more") }
        if let failure = world.failure { world.failAgain("years later: \(failure)") }
    }

    private func lost() throws -> [UInt64] {
        // What is ignored is on one device only.
        let kept = try world.cloud.kept().union(world.machines.flatMap { $0.disk.tokens })
        return world.ledger.living.filter { !kept.contains($0) }
    }

    /// Links have no versions: what one leads to is there, under whatever name, or somebody has replaced it who had seen it.
    private func balanceTargets() throws {
        // In a package they are its content.
        guard world.settings.has(.links), !world.settings.has(.packages), !mayOutliveOnlyAsSaved,
            // Somebody has put an older one back, or nobody knows any more what was agreed on.
            world.counts[.treesSetBack] == nil, world.counts[.serverRestored] == nil
        else { return }
        let there = try world.cloud.targets().union(world.machines.flatMap { $0.disk.targets })
        let lost = world.ledger.lostTargets(besides: there)
        if let first = lost.first { world.fail("what \(lost.count) links led to is lost, first target \(first)") }
    }

    private func balance() throws {
        try balanceTargets()
        let lost = try lost()
        if let first = lost.first {
            world.fail("\(lost.count) contents are lost, first \(first) by \(world.ledger.authors[first] ?? "?")")
        }
    }
}
