import EngineCore
import Reconciliation
import UbiquityModel

/// What programs do to packages, besides what they do to all files and folders.
extension SimMachine {
    /// One act of a program that knows packages.
    func actOnPackage(_ random: SimRandom) {
        guard let device else { return }
        chance = random
        let what = chance.below(100)
        if isDiskFull, what < 70 { return }
        switch what {
        case 0..<25: makePackage(device)
        case 25..<42: writeElement()
        case 42..<54: addElement(device)
        case 54..<60: removeElement(device)
        case 60..<70: saveAnew(device)
        case 70..<78: renamePackage(device)
        case 78..<86: moveElement(device)
        case 86..<90: removePackage(device)
        default: evictPackage(device)
        }
    }

    private func packages() -> [Found] {
        var packages: [Found] = []
        for folder in all(.folder) where !packages.contains(where: { folder.path.isInside($0.path) }) {
            if device?.seen(folder.number, folder.place.name)?.kind == .package { packages.append(folder) }
        }
        return packages
    }

    private func elements(of package: Found, _ kind: LocalKind? = nil) -> [Found] {
        disk.elements(of: package.number).filter { kind == nil || disk[$0.number]?.kind == kind }.map {
            Found(
                path: ItemPath(package.path.names + $0.path.names),
                place: $0.place,
                number: $0.number
            )
        }
    }

    private func name(_ texts: [String]) -> Name {
        guard let text = chance.pick(texts), let name = try? Name(text) else {
            preconditionFailure("letters are a name")
        }
        return name
    }

    private func somePackageName() -> Name {
        name(["p.\(SimDevice.packageExtension)", "q.\(SimDevice.packageExtension)"])
    }

    private func makePackage(_ device: SimDevice) {
        let folders = [SimDisk.root] + all(.folder).map(\.number)
        let place = LocalPlace(folder: SimDisk.key(chance.pick(folders) ?? SimDisk.root), name: somePackageName())
        guard disk.entry(place) == nil else { return }
        world.count(.packages)
        let number = makeFolder(at: place, device)
        world.note("\(name) makes package \(shown(place))")
        fillFolder(number, device)
    }

    private func fillFolder(_ number: UInt64, _ device: SimDevice) {
        var folder = number
        if chance.happens(25) {
            folder = makeFolder(at: LocalPlace(folder: SimDisk.key(number), name: name(["d"])), device)
        }
        for text in ["x", "y", "z"].prefix(1 + chance.below(3)) {
            let place = LocalPlace(folder: SimDisk.key(chance.happens(70) ? number : folder), name: name([text]))
            guard disk.entry(place) == nil else { continue }
            let tokens = 1 + chance.below(2)
            makeFile(at: place) { machine, file in machine.append(tokens, file) }
        }
    }

    private func writeElement() {
        guard let package = chance.pick(packages()), let file = chance.pick(elements(of: package, .file)) else {
            return
        }
        open(file) { machine in
            machine.world.count(.writes)
            if machine.chance.happens(50) { machine.truncate(file.number) }
            machine.append(1, file.number)
            machine.world.note("\(machine.name) writes \(machine.shown(file.place))")
        }
    }

    private func addElement(_ device: SimDevice) {
        guard let package = chance.pick(packages()) else { return }
        let folders = [package.number] + elements(of: package, .folder).map(\.number)
        let folder = SimDisk.key(chance.pick(folders) ?? package.number)
        let place = LocalPlace(folder: folder, name: name(["x", "y", "z", "d"]))
        guard disk.entry(place) == nil else { return }
        world.note("\(name) adds \(shown(place))")
        if place.name.bytes == Array("d".utf8) {
            _ = makeFolder(at: place, device)
        } else {
            makeFile(at: place) { machine, file in machine.append(1, file) }
        }
    }

    private func removeElement(_ device: SimDevice) {
        guard let package = chance.pick(packages()), let file = chance.pick(elements(of: package, .file)) else {
            return
        }
        world.note("\(name) removes \(shown(file.place))")
        remove(file, device)
    }

    /// Writes all of it beside, and puts that in its place: by one exchange, or by two renames. Then the old one goes.
    private func saveAnew(_ device: SimDevice) {
        guard let package = chance.pick(packages()) else { return }
        let beside = LocalPlace(folder: package.place.folder, name: name([".tmp-folder"]))
        guard disk.entry(beside) == nil else { return }
        world.note("\(name) saves \(shown(package.place)) anew")
        let number = makeFolder(at: beside, device)
        fillFolder(number, device)
        let exchanges = chance.happens(50)
        world.later(100...20_000) { [self] in
            guard let device = self.device, disk.entry(beside) == number, disk.entry(package.place) == package.number
            else { return }
            if exchanges {
                exchange(
                    Found(path: .root, place: beside, number: number),
                    package,
                    device
                )
                removeTree(Found(path: .root, place: beside, number: package.number), device)
            } else {
                let backup = LocalPlace(folder: beside.folder, name: name([".tmp-backup"]))
                guard disk.entry(backup) == nil else { return }
                replace(backup, by: package.place, package.number, device)
                replace(package.place, by: beside, number, device)
                removeTree(Found(path: .root, place: backup, number: package.number), device)
            }
        }
    }

    /// A package gets another name, which may be no package's, or a folder gets a package's.
    private func renamePackage(_ device: SimDevice) {
        let becomes = chance.happens(50)
        let folders = becomes ? all(.folder).filter { !$0.path.names.isEmpty } : packages()
        guard let folder = chance.pick(folders) else { return }
        let parents = [SimDisk.root] + all(.folder).filter { !$0.path.isInside(folder.path) }.map(\.number)
        let parent = chance.happens(70) ? folder.place.folder : SimDisk.key(chance.pick(parents) ?? SimDisk.root)
        let to = LocalPlace(folder: parent, name: becomes ? somePackageName() : name(["a", "b", "c"]))
        guard disk.entry(to) == nil else { return }
        world.count(.renames)
        world.note("\(name) renames \(shown(folder.place)) to \(shown(to))")
        replace(to, by: folder.place, folder.number, device)
    }

    /// Into a package, or out of it.
    private func moveElement(_ device: SimDevice) {
        guard let package = chance.pick(packages()) else { return }
        let isInward = chance.happens(50)
        let outside = all().filter { !$0.path.isInside(package.path) && !package.path.isInside($0.path) }
        guard let item = chance.pick(isInward ? outside : elements(of: package)) else { return }
        let folder =
            isInward
            ? package.number
            : chance.pick([SimDisk.root] + outside.filter { disk[$0.number]?.kind == .folder }.map(\.number))
        let to = LocalPlace(
            folder: SimDisk.key(folder ?? SimDisk.root),
            name: name(isInward ? ["x", "y", "z", "w"] : ["a", "b", "c"])
        )
        guard disk.entry(to) == nil else { return }
        world.count(.renames)
        world.note("\(name) moves \(shown(item.place)) to \(shown(to))")
        replace(to, by: item.place, item.number, device)
    }

    private func removePackage(_ device: SimDevice) {
        guard let package = chance.pick(packages()) else { return }
        world.note("\(name) removes all of \(shown(package.place))")
        removeTree(package, device)
    }

    /// Gives up contents that the cloud has, as the engine checks it.
    private func evictPackage(_ device: SimDevice) {
        guard let package = chance.pick(packages()), let state = device.seen(package.number, package.place.name),
            state.facts?.localBytes ?? 0 > 0, !device.hasWriter(state.key),
            var row = database.synced(key: state.key).first(where: { $0.content.kind == .package }),
            case .file(let content) = row.content, row.local?.describes(state) == true,
            database.remote[row.id]?.content == row.content,
            ((try? world.cloud.tokens(of: content.revision)) ?? nil) != nil, device.isDrained,
            device.synchronizer.isRunningPass == false,
            !device.synchronizer.core.isWaiting(.place(package.place))
        else { return }
        world.count(.evictions)
        world.note("\(name) evicts \(shown(package.place))")
        // It may be killed in the middle.
        let left = chance.happens(20) ? chance.below(3) : Int.max
        var start = SimContent.tokenBytes
        for (index, element) in elements(of: package, .file).enumerated() {
            guard let inner = disk.state(element.number) else { continue }
            defer { start += inner.size }
            guard !inner.isDataless, inner.size > 0, index < left, disk[element.number]?.links == 1 else { continue }
            disk[element.number]?.placeholder = Placeholder(
                revision: content.revision,
                generation: chance.next(),
                size: inner.size,
                modified: inner.modified,
                mode: inner.mode,
                offset: start
            )
            disk[element.number]?.tokens = []
            disk[element.number]?.changed = SimDisk.tick(timeOfDay)
        }
        guard let evicted = device.seen(package.number, package.place.name) else { return }
        row.local = LocalEvidence(evicted)
        database.apply(SyncedChanges(upserts: [row]))
    }
}
