import Driver
import EngineCore
import Replica
import SystemPackage
import UbiquityModel

/// Packages as the device sees them: to the disk and to the driver they are folders.
extension EngineView {
    func package(around folder: InodeKey) throws -> LocalPlace? { try packages.package(around: folder) }

    /// A folder that is a package is seen as one.
    func seen(_ state: LocalState?, in directory: Int32, _ name: Name) throws -> LocalState? {
        guard let state, state.kind == .folder else { return state }
        do {
            return try packages.state(of: state, in: directory, name) {
                engine?.assumeIsolated { $0.synchronizer.scanFormerPackage(state.key) }
            } files: { files, linked in
                packageFiles[state.key] = files
                engine?.assumeIsolated { $0.synchronizer.noteLinked(linked, of: state.key) }
            } ?? state
        } catch .stale as Errno {
            // Names in it are changing at this moment, which is told of: by then it is another one.
            var changing = state
            changing.kind = .package
            changing.facts = PackageFacts(
                // No package's, and not what stands for "not known".
                fingerprint: Timestamp(nanoseconds: -1),
                datalessElements: 0,
                bytes: 0,
                localBytes: 0,
                newestChange: Self.timeOfDay
            )
            return changing
        }
    }

    func newStagedName() -> String { Staging.freshName() }

    // MARK: Acts

    /// What came of an act, in terms of packages where it was done to one: the driver knows folders.
    func translated(
        _ result: Result<MutationResult, MutationFailure>,
        of mutation: Mutation
    ) -> Result<MutationResult, MutationFailure> {
        switch mutation {
        case .publish(let staged, _, _, _), .replacePackage(let staged, _, _, _, _):
            guard let package = stagedPackages.removeValue(forKey: staged), case .success = result else {
                return result
            }
            if case .replacePackage = mutation { engine?.assumeIsolated { $0.keepReplaced(staged) } }
            return .success(MutationResult(state: package))
        case .removePackage(_, _, _, _, let staged):
            // If it failed half-way, it lies there as well.
            let isThere = if case .success = result { true } else { replica.staging.mayHoldReplaced(staged) }
            if isThere { engine?.assumeIsolated { $0.keepReplaced(staged) } }
            return result
        case .move(_, _, let parent, let name, let evidence):
            guard case .success(let moved) = result, moved.state?.kind == .folder else { return result }
            packages.noteMoved(evidence.key)
            guard
                let state = (try? observe(LocalPlace(folder: parent, name: name))) ?? nil, state.kind == .package
            else { return result }
            return .success(MutationResult(state: state, isUnchanged: evidence.describes(state)))
        case .setAttributes(let parent, let name, let evidence, _, _, _):
            guard case .success(let set) = result, set.state?.kind == .folder,
                let state = (try? observe(LocalPlace(folder: parent, name: name))) ?? nil, state.kind == .package
            else { return result }
            // What programs have changed in it meanwhile is no part of what is agreed on.
            return evidence.describes(state) ? .success(MutationResult(state: state)) : .failure(.stale)
        case .remove: return result
        }
    }
}
