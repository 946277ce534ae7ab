import EngineCore
import Reconciliation
import UbiquityModel

import struct SystemPackage.Errno

/// What the engine does to the tree: one act each, with the checks of the driver.
extension SimDevice {
    func act(_ mutation: Mutation) throws(MutationFailure) -> MutationResult {
        world.count(.mutations)
        switch mutation {
        case .publish(let staged, let parent, let name, let expecting):
            return try publish(staged, LocalPlace(folder: parent, name: name), expecting)
        case .replacePackage(let staged, let parent, let name, let expecting, let isPatient):
            return try replacePackage(
                staged,
                LocalPlace(folder: parent, name: name),
                expecting,
                isPatient: isPatient
            )
        case .removePackage(let parent, let name, let expecting, let isPatient, _):
            return try removePackage(LocalPlace(folder: parent, name: name), expecting, isPatient: isPatient)
        case .remove(let parent, let name, let expecting, let isFolder):
            let number = try held(LocalPlace(folder: parent, name: name), expecting)
            guard let inode = machine.disk[number], (inode.kind == .folder) == isFolder else { throw .stale }
            guard inode.entries.isEmpty else { throw .notEmpty }
            machine.disk.unlink(LocalPlace(folder: parent, name: name), machine.timeOfDay)
            return MutationResult(state: nil)
        case .move(let fromParent, let fromName, let toParent, let toName, let expecting):
            return try move(
                LocalPlace(folder: fromParent, name: fromName),
                to: LocalPlace(folder: toParent, name: toName),
                expecting
            )
        case .setAttributes(let parent, let name, let expecting, let modified, let mode, let extended):
            let place = LocalPlace(folder: parent, name: name)
            let number = try held(place, expecting)
            set(number, modified, mode, extended)
            let state = translated(machine.disk.state(number), at: place)
            // What programs have changed in a package meanwhile is no part of what is agreed on.
            if let state, state.kind == .package, !expecting.describes(state) { throw .stale }
            return MutationResult(state: state)
        }
    }

    private func publish(
        _ staged: String,
        _ place: LocalPlace,
        _ expecting: Expectation
    ) throws(MutationFailure) -> MutationResult {
        guard let number = machine.disk.staging[staged], isFolder(place.folder) else { throw .stale }
        switch expecting {
        case .absent: if machine.disk.entry(place) != nil { throw .stale }
        case .inode(let evidence): _ = try held(place, evidence)
        }
        machine.disk.staging[staged] = nil
        machine.disk.publish(number, at: place, machine.timeOfDay)
        let state = translated(machine.disk.state(number), at: place)
        if state?.kind == .package { folders.move(SimDisk.key(number), parent: place.folder, name: place.name) }
        return MutationResult(state: state)
    }

    private func move(
        _ from: LocalPlace,
        to: LocalPlace,
        _ evidence: LocalEvidence
    ) throws(MutationFailure) -> MutationResult {
        guard let number = machine.disk.entry(from), let before = machine.disk.state(number),
            before.key == evidence.key,
            machine.disk.entry(to) == nil, isFolder(to.folder)
        else { throw .stale }
        guard !isInside(to.folder, number) else { throw .system(.invalidArgument) }
        machine.disk.rename(from, to: to, machine.timeOfDay)
        marks.noteMoved(before.key)
        if let state = translated(machine.disk.state(number), at: to), state.kind == .package {
            return MutationResult(state: state, isUnchanged: evidence.describes(state))
        }
        let isUnchanged = before.kind == .folder || !hasWriter(before.key) && evidence.describes(before)
        return MutationResult(state: machine.disk.state(number), isUnchanged: isUnchanged)
    }

    private func set(
        _ number: UInt64,
        _ modified: Timestamp?,
        _ mode: UInt16?,
        _ extended: (set: [[UInt8]: [UInt8]], remove: [[UInt8]])?
    ) {
        machine.disk[number]?.changed = SimDisk.tick(machine.timeOfDay)
        if let modified {
            machine.disk[number]?.modified = modified
            machine.disk[number]?.placeholder?.modified = modified
        }
        if let mode {
            machine.disk[number]?.mode = mode
            machine.disk[number]?.placeholder?.mode = mode
        }
        if let extended {
            for name in extended.remove { machine.disk[number]?.extended[name] = nil }
            machine.disk[number]?.extended.merge(extended.set) { $1 }
        }
    }

    /// The inode at a place, if it is as expected and nobody writes to it.
    private func held(_ place: LocalPlace, _ evidence: LocalEvidence) throws(MutationFailure) -> UInt64 {
        guard let number = machine.disk.entry(place), let state = machine.disk.state(number),
            state.key == evidence.key
        else { throw .stale }
        if hasWriter(state.key) {
            world.count(.busy)
            throw .busy
        }
        guard evidence.describes(state) else { throw .stale }
        return number
    }

    private func isFolder(_ key: InodeKey) -> Bool { machine.disk[SimDisk.number(key)]?.kind == .folder }

    private func isInside(_ folder: InodeKey, _ number: UInt64) -> Bool {
        if SimDisk.number(folder) == number { return true }
        return machine.disk[number]?.entries.values.contains { isInside(folder, $0) } ?? false
    }
}
