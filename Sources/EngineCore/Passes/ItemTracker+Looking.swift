import Reconciliation
package import UbiquityModel

/// From places and items to candidates: which item is it, and what do the three trees say of it?
///
/// For files the name wins: another inode at a synced name is new content of that name's item. Folders, and files whose old
/// name stayed free, follow their inode: they have moved (architecture section 4, "Safe saves").
extension ItemTracker {
    package func collect(_ work: Work, into pass: Pass) throws {
        do {
            switch work {
            case .place(let place): try collect(place, work, into: pass)
            case .item(let item): try collect(item, work, into: pass)
            }
        } catch {
            // Of these perhaps only a part was seen. (Here, since one look leads to others.)
            for candidate in pass.all where candidate.works.contains(work) { candidate.verdict = .failed }
            throw error
        }
    }

    // MARK: A place that a program changed

    func collect(_ place: LocalPlace, _ work: Work, into pass: Pass) throws {
        try pass.visit(place, work) {
            if let package = try view.package(around: place.folder) {
                return try collect(place, in: package, work, into: pass)
            }
            if IgnoreRules.isName(place.name) { try lookAtRules(at: place, work, into: pass) }
            try look(at: place, work, into: pass)
        }
    }

    private func look(at place: LocalPlace, _ work: Work, into pass: Pass) throws {
        // First of all: what lies in a folder that stays here has no item as its parent.
        if let path = view.path(of: place), let reason = localOnlyReason(place, path) {
            let row = try knownItem(of: place.folder).flatMap { try rows(at: place, in: $0, nil).first }
            let state = try view.observe(place)
            if let folder = try folderToLeaveWith(place, state, row) { return try collect(folder, work, into: pass) }
            return try collectLocalOnly(place, state, row, reason, work, into: pass)
        }
        guard let parent = try parentItem(of: place, work, into: pass) else {
            return try lookAtHomeless(place, work, into: pass)
        }
        let ahead = changedAt[place] == nil ? view.observedAhead(place) : nil
        var state = try ahead ?? view.observe(place)
        // What a lookup has made since the pass began gets its row now: a program may have moved it here, and it would be taken for new.
        view.recordMade()
        let known = try rows(at: place, in: parent, state)
        // What is an item already may have been changed by this engine, too.
        if ahead != nil, !known.isEmpty { state = try view.observe(place) }
        try look(at: place, parent, state, known.first, work, into: pass)
        for row in known.dropFirst() { try collectAbsent(row, work, into: pass) }
    }

    /// The items that were synced under a name: first the one that has it still, if any has.
    package func rows(at place: LocalPlace, in parent: ItemID, _ state: LocalState?) throws -> [SyncedItem] {
        var rows = try view.synced(at: Place(parent: parent, name: place.name))
        guard rows.count > 1 else { return rows }
        let kind = state.flatMap { self.kind(of: $0) }
        let owner =
            try rows.firstIndex { state != nil && $0.local?.key == state?.key }
            // A restored backup has other inodes than its rows say: a link is not the file that the cloud has under the name by now.
            ?? rows.firstIndex { try $0.content.kind == kind && !isElsewhere($0, than: place) }
            ?? rows.firstIndex { try !isElsewhere($0, than: place) }
        if let owner { rows.insert(rows.remove(at: owner), at: 0) }
        return rows
    }

    /// Its file is known to be at another place by now.
    package func isElsewhere(_ row: SyncedItem, than place: LocalPlace) throws -> Bool {
        guard let key = row.local?.key, let own = currentPlace(of: key), own != place else { return false }
        return try view.observe(own)?.key == key
    }

    private func look(
        at place: LocalPlace,
        _ parent: ItemID,
        _ state: LocalState?,
        _ row: SyncedItem?,
        _ work: Work,
        into pass: Pass
    ) throws {
        guard let state, state.kind != .other else {
            if let row { try collectAbsent(row, work, into: pass) }
            return try lookAtWhatWasMoved(to: place, besides: row?.id, work, into: pass)
        }
        if let own = try sentItem(state, at: place, row) {
            try found(own.id, place, parent, state, own, work, into: pass)
            if let row, row.id != own.id { try collectAbsent(row, work, into: pass) }
            return
        }
        if let row, row.local?.key == state.key, row.content.kind == kind(of: state) {
            if state.kind == .package, try view.synced(key: state.key).contains(where: { $0.content == .folder }) {
                // The folder that it was has still to leave the cloud: others may have put something into it.
                try collectLeaving(place, state, work, into: pass)
            }
            return try found(row.id, place, parent, state, row, work, into: pass)
        }
        if state.kind == .package, let row = try view.synced(key: state.key).first(where: { $0.content == .folder }) {
            guard try collectBecomingPackage(row, place, parent, state, work, into: pass) else { return }
        }
        if let row,
            let own = try view.synced(key: state.key).first(where: {
                $0.place == row.place && $0.content.kind == kind(of: state)
            })
        {
            // Others have moved the one away and given its name to another, and that is here already.
            try found(own.id, place, parent, state, own, work, into: pass)
            return try collectAbsent(row, work, into: pass)
        }
        if row == nil, let own = try itemInTransit(state, at: place) {
            return try found(own.id, place, parent, state, own, work, into: pass)
        }
        // A file does not go on as the folder that had its name.
        if let owner = try movedItem(
            state,
            to: place,
            nameIsTaken: row.map { try $0.content.kind == kind(of: state) && !isReplaced($0, by: state) } ?? false
        ), !isFound(owner.id, state, elsewhereThan: place, pass) {
            try found(owner.id, place, parent, state, owner, work, into: pass)
            if let row, row.id != owner.id { try collectAbsent(row, work, into: pass) }
            return try lookAtWhatWasMoved(to: place, besides: owner.id, work, into: pass)
        }
        if let row, kind(of: state) == row.content.kind, try !livesElsewhere(row, than: place) {
            try found(row.id, place, parent, state, row, work, into: pass)
            return try lookAtFormerNames(of: state, besides: row.id, work, into: pass)
        }
        if row == nil, let own = try movedItem(replacedBy: state, at: place),
            pass.candidates[own.id]?.found.map({ $0.place == place }) ?? true
        {
            return try found(own.id, place, parent, state, own, work, into: pass)
        }
        // What is here first: what was here may lie in it now.
        try collectNew(place, parent, state, work, into: pass)
        if let row { try collectAbsent(row, work, into: pass) }
    }

    /// Others have deleted the item, and what has its name here has no content that could be its next: it goes on as what it was.
    private func isReplaced(_ row: SyncedItem, by state: LocalState) throws -> Bool {
        guard let placeholder = state.placeholder, placeholder.revision != row.content.revision else { return false }
        return try view.remote(row.id)?.isDeleted ?? false
    }

    /// One of the names of an inode goes on as the item, or what has taken the place of one: each other one is new, also if it is the last.
    private func isFound(_ item: ItemID, _ state: LocalState, elsewhereThan place: LocalPlace, _ pass: Pass) -> Bool {
        guard let found = pass.candidates[item]?.found, found.place != place else { return false }
        return state.hasOtherNames || hasLost(found.place, state.key)
    }

    /// What had come here from its row's place, which nobody looks at again, and has gone: removed or replaced before that was sent, or while
    /// nothing could be, since nobody has its content.
    private func lookAtWhatWasMoved(
        to place: LocalPlace,
        besides item: ItemID?,
        _ work: Work,
        into pass: Pass
    ) throws {
        for key in moves.keys(at: place) where try view.observe(place)?.key != key {
            for row in try view.synced(key: key) where row.id != item { try collectAbsent(row, work, into: pass) }
        }
    }

    /// What was another item until it went on as this one: that other one has what is at its name now, or has ended.
    private func lookAtFormerNames(
        of state: LocalState,
        besides item: ItemID,
        _ work: Work,
        into pass: Pass
    ) throws {
        guard state.linkCount == 1 else { return }
        for row in try view.synced(key: state.key) where row.id != item && row.content != .folder {
            guard let folder = folderKey(of: row.place.parent) else { continue }
            let place = LocalPlace(folder: folder, name: row.place.name)
            try collect(place, work, into: pass)
            // What leads there is settled before that is.
            if case .later(let delay)? = pass.candidates[row.id]?.verdict { pass.lookLaterAt[place] = delay }
        }
    }

    /// A folder keeps its identity where it went: another one at its old name is new. So does a file whose move the cloud knows, and one
    /// that has made room.
    private func livesElsewhere(_ row: SyncedItem, than place: LocalPlace) throws -> Bool {
        guard let key = row.local?.key else { return false }
        if row.content == .folder { return view.place(ofFolder: key).map { $0 != place } ?? false }
        if let name = TransitionalName.of(row.id), name != place.name,
            try view.observe(LocalPlace(folder: place.folder, name: name))?.key == key
        {
            // The folder was set back to a moment at which it had, and another one had the name.
            return true
        }
        // By a further name it may be there without having moved.
        guard let own = try moves[key] ?? placeByRemote(row), own != place, try view.observe(own)?.key == key else {
            return false
        }
        return try isThereInTheCloud(row, own)
    }

    func isThereInTheCloud(_ row: SyncedItem, _ place: LocalPlace) throws -> Bool {
        guard let remote = try view.remote(row.id), remote.place.name == place.name else { return false }
        return try knownItem(of: place.folder) == remote.place.parent
    }

    /// The item that a folder is known as; `nil` for a new one, and for one that stays here.
    package func knownItem(of folder: InodeKey) throws -> ItemID? {
        if folder == view.rootKey { return .root }
        return try view.synced(key: folder).first { $0.content == .folder }?.id
    }

    /// The item of a synced row whose name is free now: it was deleted, or its inode is elsewhere.
    func collectAbsent(_ row: SyncedItem, _ work: Work, into pass: Pass) throws {
        if let key = row.local?.key, let place = currentPlace(of: key) {
            try collect(place, work, into: pass)
            if let candidate = pass.candidates[row.id], candidate.found != nil || candidate.deletionIsProven {
                // Other work may have led to it, and what comes of it is for this one as well, and for what leads here later.
                _ = pass.candidate(row.id, work)
                return
            }
            if let folder = folderKey(of: row.place.parent) {
                // Where it went it may be ignored, and no item, while another one goes on under its own name; or it has gone back without a word.
                try collect(LocalPlace(folder: folder, name: row.place.name), work, into: pass)
                if let candidate = pass.candidates[row.id], candidate.found != nil { return }
            }
            if let state = try view.observe(place), state.key == key, canBe(row, state),
                !pass.all.contains(where: { $0.found?.state.key == key })
            {
                // It is there, and could not be told yet what it is.
                let candidate = pass.candidate(row.id, work)
                candidate.synced = row
                if candidate.verdict == nil { candidate.verdict = .later(.milliseconds(100)) }
                return
            }
        }
        for place in [try placeByRemote(row), try placeSentAs(row)].compactMap(\.self) {
            try collect(place, work, into: pass)
            if let candidate = pass.candidates[row.id], candidate.found != nil { return }
        }
        let candidate = pass.candidate(row.id, work)
        guard candidate.found == nil else { return }
        if try waitsForStranded(row, candidate) { return }
        try noteAbsent(row, candidate)
    }

    /// An item that is not where it was. Without a proof that it was deleted it is put back; but a rename is reported a moment after the
    /// disk has it, so absence has to last before it is believed.
    private func noteAbsent(_ row: SyncedItem, _ candidate: Candidate) throws {
        candidate.remote = try view.remote(row.id)
        candidate.synced = agreedRow(row, candidate.remote)
        candidate.deletionIsProven = try isProvenDeletion(row)
        guard !candidate.deletionIsProven, row.local != nil, candidate.verdict == nil else { return }
        let since = absentSince[row.id] ?? view.now
        absentSince[row.id] = since
        if view.now - since < Self.absenceTime { candidate.verdict = .later(Self.absenceTime) }
    }

    private static var absenceTime: Duration { .milliseconds(300) }

    package func isProvenDeletion(_ row: SyncedItem) throws -> Bool {
        if contested.contains(row.id) { return false }
        if view.isLogged(.item(row.id)) { return true }
        let own = folderKey(of: row.place.parent).map { LocalPlace(folder: $0, name: row.place.name) }
        if let key = row.local?.key {
            if view.isLogged(.inode(key)) || view.isLogged(.replacing(key)) { return true }
            if hasLost(own, key) { return true }
            // Renamed to a name that continues another item, or that it has lost. Else, where it is not there either, it goes on from there at
            // this very moment, and of that nothing has been said yet.
            if let place = moves[key] { return try view.observe(place)?.key == key || hasLost(place, key) }
        }
        guard let own, vanished.contains(own) else { return false }
        // What left the name may have been another file: a lookup has made this one there since.
        guard let key = row.local?.key else { return true }
        return try view.key(at: own) != key
    }

    private func hasLost(_ place: LocalPlace?, _ key: InodeKey) -> Bool {
        guard !unnamed.isEmpty, let place else { return false }
        return unnamed[place]?.contains(key) ?? false
    }

    func found(
        _ id: ItemID,
        _ place: LocalPlace,
        _ parent: ItemID,
        _ state: LocalState,
        _ row: SyncedItem?,
        _ work: Work,
        into pass: Pass
    ) throws {
        try found(id, place, parent, state, row, remote: try view.remote(id), work, into: pass)
    }

    /// - Parameter remote: what the cloud has said of it.
    func found(
        _ id: ItemID,
        _ place: LocalPlace,
        _ parent: ItemID,
        _ state: LocalState,
        _ row: SyncedItem?,
        remote: RemoteItem?,
        _ work: Work,
        into pass: Pass
    ) throws {
        let candidate = pass.candidate(id, work)
        candidate.remote = remote
        if let already = candidate.found, already.state.key != state.key {
            // One item in two places: names are changing at this moment.
            candidate.verdict = .later(.milliseconds(200))
            return
        }
        if let row, row.local?.key != state.key, try waitsForStranded(row, candidate) {
            // So is what is here: after a server was restored, the row of the item that it was may tell of another revision, and ask for nothing.
            if state.isDataless, refusal(of: state.key) == nil {
                waits(candidate.works, forContentOf: state.key)
                view.fetchWhole(place, state.key)
            }
            // What follows the content that is here can be had, whatever the item of the name waits for itself.
            if state.linkCount == 1, candidate.found == nil, let placeholder = state.placeholder,
                let next = successor(of: state), next.id != id
            {
                candidate.found = Candidate.Found(placeholder, at: place, in: parent, state, row.attributes)
                candidate.applies = [.refer(next)]
                candidate.verdict = nil
            }
            return
        }
        if let placeholder = state.placeholder, !isAbsent(state.key),
            try isForeign(placeholder, state.key, at: place, id, row, candidate.remote)
        {
            bringWhole(place, state, candidate)
            return
        }
        if let former = row?.local?.key, former != state.key { candidate.formerKey = former }
        if state.hasOtherNames {
            candidate.linkedKey = state.key
            if let other = candidate.found?.place { candidate.formerPlaces.insert(other) }
            if let row, let folder = folderKey(of: row.place.parent) {
                candidate.formerPlaces.insert(LocalPlace(folder: folder, name: row.place.name))
            }
        }
        var marks = aspects[place] ?? []
        // To be sent once more it is read.
        if imported.contains(id), candidate.remote?.isDeleted ?? false { marks.insert(.content) }
        // What is here is older than what was sent, if the disk has lost that with the power.
        let isOlder = marks.isEmpty && row?.local == LocalEvidence(state)
        let row = isOlder ? row : agreedRow(row, candidate.remote)
        candidate.synced = row
        if !absentSince.isEmpty, absentSince.removeValue(forKey: id) != nil,
            candidate.verdict == .later(Self.absenceTime)
        {
            // By its row it was missed in this very pass, and a place has led to it since.
            candidate.verdict = nil
        }
        // What the cloud has never heard of is sent whole, whatever was agreed on before.
        guard let (content, extended) = try details(place, state, candidate.remote == nil ? nil : row, marks) else {
            candidate.verdict = .again
            return
        }
        candidate.found = Candidate.Found(
            place: place,
            parent: parent,
            state: state,
            content: content,
            attributes: ItemAttributes(
                modified: state.kind == .package
                    ? candidate.remote?.attributes.modified ?? state.modified : state.modified,
                mode: state.mode,
                extended: extended
            ),
            // A package's time is that of what lies in it: it says nothing that the content does not say.
            timeWasSet: state.kind != .package
                && (state.kind != .folder || row == nil || marks.contains(.attributes))
        )
        try collectTwins(of: candidate, at: Place(parent: parent, name: place.name), into: pass)
    }

    /// Whoever has the name in a case-insensitive container, but for its case: whether it leaves it, or goes, has to be known in the pass in
    /// which this one is told to the cloud.
    private func collectTwins(of candidate: Candidate, at place: Place, into pass: Pass) throws {
        guard candidate.remote?.place != place else { return }
        for twin in try view.remote(like: place) where twin.id != candidate.id && !twin.isAnnounced {
            try collect(.item(twin.id), into: pass)
        }
    }

    /// What has to be opened to be known; `nil` when the name stands for something else by now.
    private func details(
        _ place: LocalPlace,
        _ state: LocalState,
        _ row: SyncedItem?,
        _ marks: LocalChange.Aspects
    ) throws -> (LocalContent, [[UInt8]: [UInt8]])? {
        if state.kind == .symlink {
            guard let target = try view.target(of: place) else { return nil }
            return (.symlink(target: target), [:])
        }
        // Whoever sets some after the look tells of it.
        let asked = state.mayHaveAttributes ? try view.extendedAttributes(of: place, state.key) : [:]
        guard let extended = asked else { return nil }
        if state.kind == .folder { return (.folder, extended) }
        if let placeholder = state.placeholder {
            return (.dataless(placeholder.revision, size: placeholder.size), extended)
        }
        return (isUnchanged(state, row, marks) ? .unchanged : .unread(size: state.size), extended)
    }

    /// Whether a whole file still has the bytes of its synced row. An inode's change time moves with its name and mode as well:
    /// then the driver's word counts, which sees every write.
    private func isUnchanged(_ state: LocalState, _ row: SyncedItem?, _ marks: LocalChange.Aspects) -> Bool {
        guard !marks.contains(.content), let local = row?.local, local.key == state.key, local.size == state.size,
            local.modified == state.modified
        else { return false }
        // Whether files in it are here or not, it is the same.
        if let facts = state.facts { return local.changed == facts.fingerprint }
        // What has gone ahead of its content says that something is still to be told, whatever was reported since.
        guard !local.isDataless, local.changed.nanoseconds != 0 else { return false }
        return local.changed == state.changed || !marks.isEmpty
    }

    // MARK: An item that others changed

    func collect(_ item: ItemID, _ work: Work, into pass: Pass) throws {
        guard pass.visitedItems.insert(item).inserted else { return }
        do { try look(at: item, work, into: pass) } catch {
            // Whoever else comes to it has seen nothing.
            pass.visitedItems.remove(item)
            throw error
        }
    }

    private func look(at item: ItemID, _ work: Work, into pass: Pass) throws {
        if let row = try view.synced(item) {
            if let place = try localPlace(of: row) {
                try collect(place, work, into: pass)
                if let candidate = pass.candidates[item] {
                    candidate.works.insert(work)
                    return
                }
            }
            return try collectAbsent(row, work, into: pass)
        }
        if let place = try newPlace(of: item) {
            // Sent without an answer, and renamed since: it is no second one.
            try collect(place, work, into: pass)
        }
        let candidate = pass.candidate(item, work)
        guard candidate.found == nil else { return }
        candidate.remote = try view.remote(item)
        guard let remote = candidate.remote, !remote.isDeleted else { return }
        candidate.leavesFor = try placeLeftFor(byNew: remote)
        // Folders first, and whatever of this device has the name already.
        if remote.place.parent != .root, folderKey(of: remote.place.parent) == nil {
            try collect(.item(remote.place.parent), into: pass)
        }
        if let folder = folderKey(of: remote.place.parent) {
            let place = LocalPlace(folder: folder, name: remote.place.name)
            guard let state = try view.observe(place) else { return }
            // A pipe or a socket never leaves the name: the item gets a second one, as it does beside what is ignored.
            if state.kind == .other { pass.givingWay.insert(item) }
            try collect(.place(place), into: pass)
        }
    }
}
