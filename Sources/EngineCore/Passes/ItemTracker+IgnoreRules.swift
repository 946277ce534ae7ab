package import Reconciliation
package import UbiquityModel

/// Which rules hold in a folder, and what they say of something that is not in the cloud.
extension ItemTracker {
    // MARK: Which rules hold

    /// - Parameter known: of the same moment; what is found out is added.
    func rules(in folder: InodeKey, _ known: inout [InodeKey: FolderRules]) throws -> FolderRules {
        var above: [LocalPlace] = []
        var keys = [folder]
        while let key = keys.last, known[key] == nil, let place = view.place(ofFolder: key), above.count < 10_000 {
            above.append(place)
            keys.append(place.folder)
        }
        guard let top = keys.popLast(), top == view.rootKey || known[top] != nil else {
            // It is gone, or about to be known.
            let place = LocalPlace(folder: folder, name: IgnoreRules.name)
            return .unknown(UnreadRules(path: IgnoreRules.name.description, place: place))
        }
        var rules = try known[top] ?? withOwnFile(.root, of: top)
        known[top] = rules
        for (key, place) in zip(keys, above).reversed() {
            if case .known(let scope) = rules { rules = try withOwnFile(scope.entering(place.name), of: key) }
            known[key] = rules
        }
        return rules
    }

    private func withOwnFile(_ scope: IgnoreScope, of folder: InodeKey) throws -> FolderRules {
        // What lies in a folder that is ignored is so whatever its own file says.
        guard scope.reason == nil else { return .known(scope) }
        if ignoring.folders.contains(folder) {
            let place = LocalPlace(folder: folder, name: IgnoreRules.name)
            let state = try view.observe(place)
            if let state, state.kind == .file {
                if state.isDataless, isAbsent(state.key), !isAboutToBeReplaced(state.key) {
                    // Whoever waited for it would wait for ever.
                    ignoring.set("its content is nowhere: nothing is ignored by it", of: folder)
                    ignoring.set(.none, of: folder, nil)
                    return .known(scope)
                }
                guard !state.isDataless, let rules = rules(of: place, state) else {
                    return .unknown(UnreadRules(path: scope.file, place: place, state: state))
                }
                var scope = scope
                scope.add(rules)
                return .known(scope)
            }
            // A link, say, leads elsewhere.
            ignoring.set(.none, of: folder, nil)
            ignoring.set(nil, of: folder)
            if state == nil { ignoring.folders.remove(folder) }
        }
        if let coming = try comingFile(of: folder) {
            let place = LocalPlace(folder: folder, name: IgnoreRules.name)
            return .unknown(UnreadRules(path: scope.file, place: place, item: coming))
        }
        return .known(scope)
    }

    /// - Returns: `nil` if it has been replaced.
    private func rules(of place: LocalPlace, _ state: LocalState) -> IgnoreRules? {
        var evidence: LocalEvidence? = LocalEvidence(state)
        if let known = ignoring.read[place.folder], known.evidence == evidence { return known.rules }
        var fault: String?
        var rules = IgnoreRules.none
        if state.size > IgnoreRules.largestFile {
            fault = "it is larger than 1 MiB: nothing is ignored by it"
        } else {
            do {
                let limit = IgnoreRules.largestFile
                guard let bytes = try view.bytes(of: place, state.key, limit: limit) else { return nil }
                rules = IgnoreRules(bytes)
            } catch {
                fault = "it cannot be read: nothing is ignored by it (\(error))"
                evidence = nil
            }
        }
        ignoring.set(fault, of: place.folder)
        ignoring.set(rules, of: place.folder, evidence)
        return rules
    }

    /// The cloud's file with rules for a folder, if it is not here: where names come only when somebody asks for them, or a moment before it
    /// comes. What is only announced rules nothing yet; nor does one that this device has sent without an answer, and has moved on.
    private func comingFile(of folder: InodeKey) throws -> ItemID? {
        guard !ignoring.withoutCloudFile.contains(folder), let item = try knownItem(of: folder) else { return nil }
        let there = try view.remote(at: Place(parent: item, name: IgnoreRules.name))
        if there.isEmpty {
            if ignoring.withoutCloudFile.count > 100_000 { ignoring.withoutCloudFile = [] }
            ignoring.withoutCloudFile.insert(folder)
        }
        return try there.first { item in
            try !item.isDeleted && !item.isAnnounced && view.synced(item.id) == nil && newPlace(of: item.id) == nil
        }?.id
    }

    // MARK: What they say

    /// Why a file is not sent under the name that it has. Its row may be one that has gone on without it: what a file was sent as stays with
    /// its name.
    package func reasonToStay(_ place: LocalPlace, _ state: LocalState, _ row: SyncedItem?) -> LocalOnly.Reason? {
        if let row, row.place.name == place.name, folderKey(of: row.place.parent) == place.folder { return nil }
        guard case .ignored(let reason)? = try? ruling(onUnsent: place, state) else { return nil }
        return reason
    }

    /// For people, too: why something that has no row is not sent.
    package func ruling(onUnsent place: LocalPlace, _ state: LocalState) throws -> IgnoreRuling {
        if try isSent(newItems[state.key]) { return .sent }
        // While all that the cloud has is still being told, what it has not is not known for good.
        let withoutCloudFile = ignoring.withoutCloudFile
        defer { ignoring.withoutCloudFile = withoutCloudFile }
        var known: [InodeKey: FolderRules] = [:]
        return try ruling(place, state, &known)
    }

    /// The places among them where a new file is sent, and of which no program has told anything: it is worth reading before its pass.
    package func worthReadingAhead(_ works: [Work]) -> [LocalPlace] {
        // As above.
        let withoutCloudFile = ignoring.withoutCloudFile
        defer { ignoring.withoutCloudFile = withoutCloudFile }
        var known: [InodeKey: FolderRules] = [:]
        return works.compactMap { work in
            guard case .place(let place) = work, changedAt[place] == nil, let path = view.path(of: place),
                LocalOnly.reason(for: path) == nil
            else { return nil }
            guard !ignoring.folders.isEmpty else { return place }
            guard case .known(let scope)? = try? rules(in: place.folder, &known) else { return nil }
            return scope.reason(for: place.name, isFolder: false) == nil ? place : nil
        }
    }

    func ruling(
        _ place: LocalPlace,
        _ state: LocalState,
        _ known: inout [InodeKey: FolderRules]
    ) throws -> IgnoreRuling {
        // A placeholder is an item of the cloud's. Under a name on the way nobody stays.
        guard !state.isDataless, !TransitionalName.matches(place.name) else { return .sent }
        let isFolder = state.kind == .folder || state.kind == .package
        if isFolder, ignoring.needed.contains(state.key) { return .sent }
        switch try rules(in: place.folder, &known) {
        case .known(let scope):
            // All devices go by the same rules: the file that says them stays here only if all of its folder does.
            let isRules = IgnoreRules.isName(place.name)
            let reason = isRules ? scope.reason : scope.reason(for: place.name, isFolder: isFolder)
            return reason.map { .ignored($0) } ?? .sent
        case .unknown(let unread):
            // Its own file is what it is.
            return place == unread.place ? .sent : .waits(unread)
        }
    }

    /// Whether the cloud has the item, or may have it.
    func isSent(_ item: ItemID?) throws -> Bool {
        guard let item else { return false }
        return try sending[item] != nil || transferring.contains(item) || view.remote(item) != nil
    }
}
