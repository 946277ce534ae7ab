import EngineCore
import Reconciliation
import UbiquityModel

/// What programs do to a machine's folder, through the mount: each act changes the disk and is reported, as the driver does it.
extension SimMachine {
    struct Found {
        var path: ItemPath
        var place: LocalPlace
        var number: UInt64
    }

    /// One act of a program, now or while a pass or a scan looks.
    func take(_ random: SimRandom) {
        // In a random order of its own: what is done is the same.
        var copy = random
        var lot = SimRandom(seed: copy.next() ^ 0x4ACE)
        if world.settings.has(.links), lot.happens(15) { return relink(random) }
        if world.settings.has(.hardLinks), lot.happens(12) { return giveName(random) }
        if world.settings.has(.claims), lot.happens(12) { return claim(random) }
        guard world.settings.has(.races), lot.happens(60) else { return act(random) }
        let isSwap = lot.happens(15)
        if device == nil {
            return whenStarted(looks: lot.below(12)) { isSwap ? $0.swap(random) : $0.act(random) }
        }
        soon(1_000...200_000, looks: lot.below(8)) { isSwap ? $0.swap(random) : $0.act(random) }
    }

    /// One act of a program, if the mount is there.
    /// - Parameter random: Decides what is done, and to what.
    func act(_ random: SimRandom) {
        guard device != nil else { return }
        chance = random
        if world.settings.has(.population), chance.happens(30) { device?.populateAll(someFolder()) }
        let what = chance.below(100)
        // What makes new files is refused.
        if isDiskFull, 0..<52 ~= what || 77..<84 ~= what || 91..<94 ~= what { return }
        switch what {
        case 0..<24: create()
        case 24..<42: write()
        case 42..<52: safeSave()
        case 52..<64: rename()
        case 64..<67: exchange()
        case 67..<77: remove()
        case 77..<84: makeFolder()
        case 84..<87: removeTree()
        case 87..<91: setAttributes()
        case 91..<94: makeLink()
        default: evict()
        }
    }

    /// Somebody says what is not to be sent, says something else, or takes it back.
    func rule(_ random: SimRandom) {
        guard let device, !isDiskFull else { return }
        chance = random
        let place = LocalPlace(folder: someFolder(), name: IgnoreRules.name)
        let path = device.path(of: place) ?? ItemPath([place.name])
        guard let number = disk.entry(place) else { return writeRules(at: place) }
        guard disk[number]?.kind == .file else { return }
        let file = Found(path: path, place: place, number: number)
        if chance.happens(25) {
            world.note("\(name) removes \(path)")
            return remove(file, device)
        }
        open(file) { machine in
            machine.truncate(number)
            machine.append(1 + machine.chance.below(3), number)
            machine.note(rules: number, path)
        }
    }

    private func writeRules(at place: LocalPlace) {
        let time = SimDisk.tick(timeOfDay)
        let number = disk.add(SimInode(kind: .file, mode: 0o644, modified: time, changed: time))
        disk.link(number, at: place, timeOfDay)
        report(.entry, place, number)
        let path = device?.path(of: place) ?? ItemPath([place.name])
        hold(number, place) { machine in
            machine.append(1 + machine.chance.below(3), number)
            machine.note(rules: number, path)
        }
    }

    private func note(rules number: UInt64, _ path: ItemPath) {
        world.count(.rules)
        let text = String(decoding: SimRules.text(disk[number]?.tokens ?? []), as: UTF8.self)
        world.note("\(name) writes \(path): \(text.split(separator: "\n").joined(separator: ", "))")
    }

    // MARK: Places

    func all(_ kind: LocalKind? = nil) -> [Found] {
        var result: [Found] = []
        disk.walk { path, place, number in
            if kind == nil || disk[number]?.kind == kind {
                result.append(Found(path: path, place: place, number: number))
            }
        }
        return result
    }

    private func someFolder() -> InodeKey {
        let folders = [SimDisk.root] + all(.folder).map(\.number)
        return SimDisk.key(chance.pick(folders) ?? SimDisk.root)
    }

    /// Few names, so that devices meet.
    private func somePlace() -> LocalPlace {
        var names = ["a", "b", "c", "d", "e"]
        if world.settings.isCaseInsensitive { names += ["A", "B", "C"] }
        if world.settings.has(.noSync) { names += ["a.nosync", "c.nosync"] }
        if world.settings.has(.databases) { names += ["a-wal", "a-shm", "b-journal", "b-shm"] }
        guard let text = chance.pick(names), let name = try? Name(text) else {
            preconditionFailure("a letter is a name")
        }
        let place = LocalPlace(folder: someFolder(), name: name)
        device?.populate(place)
        return place
    }

    /// Whether a new name is refused, as the driver does it: one that differs in case only is there.
    /// - Parameter leaving: a name of the folder that goes when this one comes.
    private func hasTwin(_ place: LocalPlace, leaving: Name? = nil) -> Bool {
        guard world.settings.isCaseInsensitive, disk.entry(place) == nil else { return false }
        let folded = place.name.folded
        let isHere = disk[SimDisk.number(place.folder)]?.entries.keys.contains { $0 != leaving && $0.folded == folded }
        let isThere = isHere ?? false || device?.hasTwinInCloud(of: place) ?? false
        if isThere { world.count(.twinsRefused) }
        return isThere
    }

    func shown(_ place: LocalPlace) -> String {
        device?.path(of: place)?.description ?? "\(place.name)"
    }

    func report(
        _ aspects: LocalChange.Aspects,
        _ place: LocalPlace,
        _ number: UInt64,
        from: LocalPlace? = nil,
        replaced: UInt64? = nil
    ) {
        lookUp(place.folder)
        if let from { lookUp(from.folder) }
        let isBesideDatabase =
            LocalOnly.databaseOfSharedMemory(place.name) != nil || LocalOnly.databaseOfCompanion(place.name) != nil
        if isBesideDatabase { world.count(.databases) }
        let change = LocalChange(
            aspects: aspects,
            parent: place.folder,
            name: place.name,
            key: SimDisk.key(number),
            movedFrom: from.map { ($0.folder, $0.name) },
            replaced: replaced.map(SimDisk.key),
            mayHaveOtherNames: disk[number].map { $0.links > 1 } ?? false,
            isFolder: disk[number]?.kind == .folder
        )
        if from != nil { tellOfMove(change) } else { tell(change) }
    }

    /// Whoever walks to a place makes the folders on the way known: those in packages, of which no scan tells, and those to which a scan has not
    /// come yet.
    private func lookUp(_ folder: InodeKey) {
        guard let device, !device.folders.contains(folder) else { return }
        var places: [InodeKey: LocalPlace] = [:]
        disk.walk { _, place, number in
            if disk[number]?.kind == .folder { places[SimDisk.key(number)] = place }
        }
        var next = folder
        while let place = places[next] {
            device.folders.add(next, parent: place.folder, name: place.name)
            next = place.folder
        }
    }

    // MARK: Files

    private func create() {
        let place = somePlace()
        guard disk.entry(place) == nil, !hasTwin(place) else { return }
        world.count(.creates)
        world.note("\(name) creates \(shown(place))")
        let tokens = 1 + chance.below(chance.happens(15) ? 6 : 2)
        makeFile(at: place) { machine, number in machine.append(tokens, number) }
    }

    func makeFile(at place: LocalPlace, _ body: @escaping (SimMachine, UInt64) -> Void) {
        let time = SimDisk.tick(timeOfDay)
        let number = disk.add(SimInode(kind: .file, mode: 0o644, modified: time, changed: time))
        disk.link(number, at: place, timeOfDay)
        report(.entry, place, number)
        hold(number, place) { machine in body(machine, number) }
    }

    private func write() {
        guard let file = chance.pick(all(.file)) else { return }
        open(file) { machine in
            machine.world.count(.writes)
            if machine.chance.happens(50) { machine.truncate(file.number) }
            machine.append(1, file.number)
            machine.world.note("\(machine.name) writes \(machine.shown(file.place))")
        }
    }

    /// Opens a file for writing, which needs all of it.
    func open(_ file: Found, _ body: @escaping (SimMachine) -> Void) {
        guard let device else { return }
        if disk[file.number]?.placeholder == nil {
            hold(file.number, file.place, body)
            return
        }
        device.fill(file.number) { [self] isHere in
            guard isHere, self.device === device, disk.entry(file.place) == file.number,
                disk[file.number]?.placeholder == nil
            else { return }
            hold(file.number, file.place, body)
        }
    }

    /// Has it open while `body` writes, and sometimes for longer.
    private func hold(_ number: UInt64, _ place: LocalPlace, _ body: @escaping (SimMachine) -> Void) {
        guard let device else { return }
        disk[number]?.writers += 1
        body(self)
        noteWriting(number, place)
        guard chance.happens(25) else { return close(number, place, device) }
        world.count(.openHandles)
        device.later(1_000...3_000_000) { [self] device in
            if disk[number] != nil, chance.happens(60) {
                append(1, number)
                // Where it is by now.
                if let found = all(.file).first(where: { $0.number == number }) { noteWriting(number, found.place) }
            }
            let place = all(.file).first { $0.number == number }?.place ?? place
            close(number, place, device)
        }
    }

    private func noteWriting(_ number: UInt64, _ place: LocalPlace) {
        guard disk[number]?.isDirty == false else { return }
        disk[number]?.isDirty = true
        report(.content, place, number)
    }

    private func close(_ number: UInt64, _ place: LocalPlace, _ device: SimDevice) {
        guard let inode = disk[number] else { return }
        disk[number]?.writers = max(0, inode.writers - 1)
        if disk[number]?.writers == 0 {
            report(.closed, place, number)
            device.writerClosed(SimDisk.key(number))
        }
    }

    func append(_ count: Int, _ number: UInt64) {
        for _ in 0..<count { disk[number]?.tokens.append(world.ledger.newToken(name)) }
        touch(number)
    }

    func truncate(_ number: UInt64) {
        world.ledger.destroy(disk[number]?.tokens ?? [])
        disk[number]?.tokens = []
        touch(number)
    }

    private func touch(_ number: UInt64) {
        let time = SimDisk.tick(timeOfDay)
        disk[number]?.modified = time
        disk[number]?.changed = time
    }

    /// Writes beside the file, then renames over it.
    private func safeSave() {
        guard let file = chance.pick(all(.file)), let name = try? Name(".tmp-save") else { return }
        let beside = LocalPlace(folder: file.place.folder, name: name)
        guard disk.entry(beside) == nil else { return }
        world.count(.safeSaves)
        world.note("\(self.name) saves \(shown(file.place)) anew")
        let time = SimDisk.tick(timeOfDay)
        let number = disk.add(SimInode(kind: .file, mode: 0o644, modified: time, changed: time))
        disk.link(number, at: beside, timeOfDay)
        report(.entry, beside, number)
        append(1 + chance.below(2), number)
        disk[number]?.isDirty = true
        report(.content, beside, number)
        report(.closed, beside, number)
        world.later(100...8_000) { [self] in
            guard let device, disk.entry(beside) == number, disk.entry(file.place) == file.number else { return }
            replace(file.place, by: beside, number, device)
        }
    }

    func replace(_ place: LocalPlace, by from: LocalPlace, _ number: UInt64, _ device: SimDevice) {
        // Two names of one file: nothing is done.
        guard disk.entry(place) != number else { return }
        if let other = disk.entry(place) {
            device.aboutToDelete(other, place)
            lose(other)
            disk.rename(from, to: place, timeOfDay)
            report(.entry, place, number, from: from, replaced: other)
        } else {
            disk.rename(from, to: place, timeOfDay)
            report(.entry, place, number, from: from)
        }
        if disk[number]?.kind == .folder {
            device.folders.move(SimDisk.key(number), parent: place.folder, name: place.name)
        }
    }

    /// What a program removes, it may: all that it could see there.
    private func lose(_ number: UInt64) {
        guard let inode = disk[number] else { return }
        // It has other names.
        if disk.tellsLinks, all(.file).filter({ $0.number == number }).count > 1 { return }
        if inode.kind == .symlink { world.ledger.destroy(target: inode.target) }
        if let placeholder = inode.placeholder {
            if let tokens = placeholder.part(of: (try? world.cloud.tokens(of: placeholder.revision)) ?? nil) {
                world.ledger.destroy(tokens)
            } else {
                world.ledger.destroy(placeholder.revision)
            }
        }
        world.ledger.destroy(inode.tokens)
    }

    private func remove() {
        guard let device, let item = chance.pick(all().filter { disk[$0.number]?.kind != .folder }) else { return }
        world.count(.deletions)
        world.note("\(name) removes \(shown(item.place))")
        remove(item, device)
    }

    func remove(_ item: Found, _ device: SimDevice) {
        lookUp(item.place.folder)
        device.aboutToDelete(item.number, item.place)
        // Killed between the word and the act.
        guard self.device === device else { return }
        lose(item.number)
        let isFolder = disk[item.number]?.kind == .folder
        let hasOthers = disk[item.number].map { $0.links > 1 } ?? false
        disk.unlink(item.place, timeOfDay)
        if isFolder { device.folders.remove(SimDisk.key(item.number)) }
        tell(
            LocalChange(
                aspects: .entry,
                parent: item.place.folder,
                name: item.place.name,
                key: SimDisk.key(item.number),
                mayHaveOtherNames: hasOthers,
                isFolder: isFolder
            )
        )
    }

    // MARK: Names

    private func rename() {
        guard let device, let item = chance.pick(all()) else { return }
        let to = somePlace()
        guard to != item.place, disk.entry(to) != item.number, !isInside(to.folder, item.number) else { return }
        // Its own old name makes room for the new one.
        guard !hasTwin(to, leaving: item.place.folder == to.folder ? item.place.name : nil) else { return }
        if let other = disk.entry(to) {
            // A folder replaces an empty folder, anything else no folder.
            guard disk[item.number]?.kind != .folder, disk[other]?.kind != .folder else { return }
        }
        world.count(.renames)
        world.note("\(name) renames \(shown(item.place)) to \(shown(to))")
        replace(to, by: item.place, item.number, device)
    }

    private func isInside(_ folder: InodeKey, _ number: UInt64) -> Bool {
        if SimDisk.number(folder) == number { return true }
        return disk[number]?.entries.values.contains { isInside(folder, $0) } ?? false
    }

    private func exchange() {
        guard let device, let one = chance.pick(all()), let other = chance.pick(all()),
            one.number != other.number, !isInside(one.place.folder, other.number),
            !isInside(other.place.folder, one.number)
        else { return }
        // Two names on the way, which last for milliseconds, nobody exchanges.
        guard !TransitionalName.matches(one.place.name) || !TransitionalName.matches(other.place.name) else { return }
        world.count(.exchanges)
        world.note("\(name) exchanges \(shown(one.place)) and \(shown(other.place))")
        exchange(one, other, device)
    }

    /// As `mv a c; mv b a; mv c b`, of files that are perhaps not here.
    private func swap(_ random: SimRandom) {
        chance = random
        let dataless = all(.file).filter { disk[$0.number]?.placeholder != nil }
        let files = dataless.count > 1 && chance.happens(80) ? dataless : all(.file)
        guard let device, let name = try? Name(".swap"), let one = chance.pick(files), let other = chance.pick(files),
            one.number != other.number
        else { return }
        let beside = LocalPlace(folder: one.place.folder, name: name)
        guard disk.entry(beside) == nil else { return }
        world.count(.swaps)
        world.note("\(self.name) swaps \(shown(one.place)) and \(shown(other.place))")
        replace(beside, by: one.place, one.number, device)
        move(from: other.place, other.number, to: one.place, device) { machine in
            machine.move(from: beside, one.number, to: other.place, device) { _ in }
        }
    }

    /// A moment later, unless something else is there by then.
    private func move(
        from: LocalPlace,
        _ number: UInt64,
        to: LocalPlace,
        _ device: SimDevice,
        then: @escaping (SimMachine) -> Void
    ) {
        // Perhaps together with the move before, between one look and the next.
        soon(300...3_000, looks: chance.below(5) - 1) { machine in
            guard machine.device === device, machine.disk.entry(from) == number, machine.disk.entry(to) == nil,
                machine.disk[SimDisk.number(to.folder)] != nil,
                !machine.hasTwin(to, leaving: from.folder == to.folder ? from.name : nil)
            else { return }
            machine.world.note("\(machine.name) moves on to \(machine.shown(to))")
            machine.replace(to, by: from, number, device)
            then(machine)
        }
    }

    func exchange(_ one: Found, _ other: Found, _ device: SimDevice) {
        disk.exchange(one.place, other.place, timeOfDay)
        for (number, place) in [(one.number, other.place), (other.number, one.place)]
        where disk[number]?.kind == .folder {
            device.folders.move(SimDisk.key(number), parent: place.folder, name: place.name)
        }
        report(.entry, other.place, one.number, from: one.place, replaced: other.number)
        report(.entry, one.place, other.number, from: other.place, replaced: one.number)
    }

    private func makeFolder() {
        let place = somePlace()
        guard let device, disk.entry(place) == nil, !hasTwin(place) else { return }
        world.count(.foldersMade)
        world.note("\(name) makes folder \(shown(place))")
        _ = makeFolder(at: place, device)
    }

    func makeFolder(at place: LocalPlace, _ device: SimDevice) -> UInt64 {
        let time = SimDisk.tick(timeOfDay)
        let number = disk.add(SimInode(kind: .folder, mode: 0o755, modified: time, changed: time))
        disk.link(number, at: place, timeOfDay)
        device.folders.insert(SimDisk.key(number), parent: place.folder, name: place.name)
        report(.entry, place, number)
        return number
    }

    private func removeTree() {
        guard let device, let folder = chance.pick(all(.folder)) else { return }
        world.count(.foldersRemoved)
        world.note("\(name) removes all of \(shown(folder.place))")
        removeTree(folder, device)
    }

    func removeTree(_ folder: Found, _ device: SimDevice) {
        device.populateTree(SimDisk.key(folder.number))
        guard let top = all().first(where: { $0.number == folder.number }) else { return }
        // Deepest first, as `rm -r` does it.
        let below = all().filter { $0.path.isInside(top.path) }.sorted { $0.path.names.count > $1.path.names.count }
        for item in below where !device.hasEntries(SimDisk.key(item.number)) { remove(item, device) }
    }

    private func makeLink() {
        let place = somePlace()
        guard device != nil, disk.entry(place) == nil, !hasTwin(place) else { return }
        world.count(.links)
        world.note("\(name) makes link \(shown(place))")
        addLink(place, to: Array("target-\(chance.below(3))".utf8))
    }

    private func addLink(_ place: LocalPlace, to target: [UInt8]) {
        let time = SimDisk.tick(timeOfDay)
        let inode = SimInode(kind: .symlink, target: target, mode: 0o777, modified: time, changed: time)
        let number = disk.add(inode)
        disk.link(number, at: place, timeOfDay)
        report(.entry, place, number)
    }

    /// As `ln -sfn`: a new link beside it, then renamed over it. Where there is none, one is made.
    private func relink(_ random: SimRandom) {
        chance = random
        guard let device, !isDiskFull else { return }
        let target = world.ledger.newTarget(name)
        let links = all(.symlink)
        guard let link = chance.happens(70) ? chance.pick(links) : nil, let name = try? Name(".link") else {
            let place = somePlace()
            guard disk.entry(place) == nil, !hasTwin(place) else { return world.ledger.destroy(target: target) }
            world.note("\(name) makes link \(shown(place)) to \(String(decoding: target, as: UTF8.self))")
            return addLink(place, to: target)
        }
        let beside = LocalPlace(folder: link.place.folder, name: name)
        guard disk.entry(beside) == nil else { return world.ledger.destroy(target: target) }
        world.count(.relinks)
        world.note("\(self.name) links \(shown(link.place)) to \(String(decoding: target, as: UTF8.self))")
        addLink(beside, to: target)
        guard let number = disk.entry(beside) else { return }
        replace(link.place, by: beside, number, device)
    }

    /// As `ln`: the file has a further name, under which it is another item.
    private func giveName(_ random: SimRandom) {
        chance = random
        guard device != nil, !isDiskFull, let file = chance.pick(all(.file)),
            // Names on the way last for milliseconds.
            !TransitionalName.matches(file.place.name)
        else { return }
        let place = somePlace()
        guard disk.entry(place) == nil, !hasTwin(place) else { return }
        // What stands for the content of two documents stands for a revision of one of them, and that may go years after its document. (It is
        // referred to another with the next start.)
        if world.settings.has(.packages), disk.state(file.number)?.isDataless ?? true { return }
        world.count(.hardLinks)
        world.note("\(name) names \(shown(file.place)) \(shown(place)) as well")
        disk.addName(file.number, at: place, timeOfDay)
        report(.entry, place, file.number)
        // And by which name it was found.
        report([], file.place, file.number)
    }

    // MARK: Coordination

    /// As `ubiquity coordinate`: the engine waits for whoever reads or writes there. What is renamed meanwhile is claimed no more.
    private func claim(_ random: SimRandom) {
        chance = random
        guard let device, let item = chance.pick(all()), let path = device.path(of: item.place) else { return }
        let isWriting = chance.happens(60)
        world.note("\(name) claims \(path) for \(isWriting ? "writing" : "reading")")
        let number = claims.begin(path, isWriting: isWriting)
        world.later(20_000...5_000_000) { [self] in
            guard claims.end(number) else { return }
            world.note("\(name) has done with \(path)")
            self.device?.claimEnded()
        }
    }

    // MARK: Attributes and contents

    private func setAttributes() {
        guard let item = chance.pick(all().filter { disk[$0.number]?.kind != .symlink }) else { return }
        world.count(.attributes)
        let time = SimDisk.tick(timeOfDay)
        disk[item.number]?.changed = time
        if chance.happens(50) {
            let mode: UInt16 = chance.pick([0o600, 0o644, 0o755, 0o700]) ?? 0o644
            disk[item.number]?.mode = mode
            disk[item.number]?.placeholder?.mode = mode
            world.note("\(name) sets the mode of \(shown(item.place))")
        } else {
            disk[item.number]?.extended[Array("user.tag".utf8)] = [UInt8(chance.below(4))]
            world.note("\(name) tags \(shown(item.place))")
        }
        report(.attributes, item.place, item.number)
    }

    /// Gives up a content that the cloud has, as the engine checks it.
    private func evict() {
        guard let file = chance.pick(all(.file)), let state = disk.state(file.number), !state.isDataless else { return }
        let rows = database.synced(key: state.key)
        guard disk[file.number]?.writers == 0, disk[file.number]?.links == 1,
            let row = rows.first(where: {
                $0.place.name == file.place.name
                    && device?.synchronizer.tracker.folderKey(of: $0.place.parent) == file.place.folder
            }) ?? rows.first,
            case .file(let content) = row.content,
            row.local?.describes(state) == true, database.remote[row.id]?.content == row.content,
            ((try? world.cloud.tokens(of: content.revision)) ?? nil) != nil, device?.isDrained == true,
            device?.synchronizer.isRunningPass == false,
            // It may be about to become another item.
            device?.synchronizer.core.isWaiting(.place(file.place)) == false,
            device?.synchronizer.tracker.reasonToStay(file.place, state, row) == nil,
            // If the server lost them then, nobody would have the rules, and what waits for them waits until somebody writes them anew.
            !(IgnoreRules.isName(file.place.name) && world.settings.has(.serverBackups))
        else { return }
        world.count(.evictions)
        world.note("\(name) evicts \(shown(file.place))")
        disk[file.number]?.placeholder = Placeholder(
            revision: content.revision,
            generation: chance.next(),
            size: state.size,
            modified: state.modified,
            mode: state.mode
        )
        disk[file.number]?.tokens = []
        disk[file.number]?.changed = SimDisk.tick(timeOfDay)
        guard let evicted = disk.state(file.number) else { return }
        var changed = row
        changed.local = LocalEvidence(evicted)
        database.apply(SyncedChanges(upserts: [changed]))
    }
}
