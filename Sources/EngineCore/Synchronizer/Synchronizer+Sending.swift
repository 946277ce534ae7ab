import Reconciliation
import UbiquityModel

/// One candidate's operations, and what goes with them.
private struct Prepared {
    var candidate: Candidate
    var operations: [(operation: ItemOperation, send: Send?)]
    /// Chunks that go along.
    var chunks: [(id: ChunkID, bytes: [UInt8])] = []

    /// - Parameter former: the operation on the item that goes before.
    mutating func add(
        _ action: ItemOperation.Action,
        _ send: Send?,
        as id: OperationID,
        isUnwitnessed: Bool,
        after former: ItemOperation.Action? = nil
    ) {
        let isEdit = if case .edit = action { true } else { false }
        let operation = ItemOperation(
            id: id,
            item: candidate.id,
            action: action,
            isUnwitnessed: isEdit && isUnwitnessed,
            formerAttributes: formerAttributes(action),
            formerTarget: formerTarget(action, after: former)
        )
        operations.append((operation, send))
    }

    /// What was agreed on before: only what has changed since then is a change.
    private func formerAttributes(_ action: ItemOperation.Action) -> ItemAttributes? {
        switch action {
        case .edit, .setAttributes(_, _, .some): candidate.synced?.attributes
        case .create, .announce, .setAttributes, .move, .delete, .revive, .resolve, .restore, .undelete, .discard: nil
        }
    }

    /// What the item led to, as far as is known here.
    private func formerTarget(_ action: ItemOperation.Action, after former: ItemOperation.Action?) -> [UInt8]? {
        switch action {
        case .edit, .delete:
            let known = former?.content ?? candidate.synced?.content ?? candidate.remote?.content
            guard case .symlink(let target)? = known else { return nil }
            return target
        case .create, .announce, .move, .setAttributes, .revive, .resolve, .restore, .undelete, .discard: return nil
        }
    }
}

/// Turns decisions into operations, commits them in batches, and records what the server answered.
extension Synchronizer {
    private static var operationsPerCommit: Int { EngineCore.passLimit }
    /// Plain bytes of the chunks that travel inside one commit.
    private static var commitBytes: Int { 4 * 1024 * 1024 }
    /// From this size on a commit's chunks are offered before they are sent.
    private static var offeredBytes: Int { 256 * 1024 }

    func send(_ sends: [PlannedSend], _ pass: Pass) async throws {
        guard !sends.isEmpty else { return }
        let admitted = holdBackDeletions(sends, pass)
        var batch: [Prepared] = []
        var operations = 0
        var bytes = 0
        // Links whose new target waits for what becomes of the former one.
        var waiting: Set<InodeKey> = []
        let joined = joinedPackages(admitted, pass)
        for send in steppingAside(inOrder(admitted)) {
            guard goesOn else {
                if send.candidate.verdict == nil { send.candidate.verdict = .again }
                continue
            }
            if send.isDeletion, let key = send.candidate.synced?.local?.key, waiting.contains(key) {
                // It went over that one: it leaves the cloud when it is there as that. Else a power loss, which sets the rename back, takes it.
                send.candidate.verdict = .later(.milliseconds(50))
                continue
            }
            if let found = send.candidate.found, isDeferred(send.candidate) { waiting.insert(found.state.key) }
            if send.isDeletion, let package = send.candidate.joins.flatMap({ joined[$0] }) {
                // What becomes of that is known first.
                if batch.contains(where: { $0.candidate.id == package.id }) {
                    try await commit(batch, pass)
                    (batch, operations, bytes) = ([], 0, 0)
                }
                if let verdict = package.verdict, verdict == .failed || verdict == .parked {
                    send.candidate.verdict = verdict
                    tracker.waitingForNews[package.item, default: []].formUnion(send.candidate.works)
                    continue
                }
            }
            guard let prepared = try prepare(send, pass) else {
                // Whatever it was that is not here any more shows when it is looked at again.
                if send.candidate.verdict == nil { send.candidate.verdict = .again }
                continue
            }
            let size = prepared.chunks.reduce(0) { $0 + $1.bytes.count }
            if operations + prepared.operations.count > Self.operationsPerCommit || bytes + size > Self.commitBytes,
                !batch.isEmpty
            {
                try await commit(batch, pass)
                (batch, operations, bytes) = ([], 0, 0)
            }
            batch.append(prepared)
            operations += prepared.operations.count
            bytes += size
        }
        guard goesOn else {
            for prepared in batch where prepared.candidate.verdict == nil { prepared.candidate.verdict = .again }
            return
        }
        if !batch.isEmpty { try await commit(batch, pass) }
    }

    /// The packages a part of which something becomes that is deleted in the cloud with that.
    private func joinedPackages(_ sends: [PlannedSend], _ pass: Pass) -> [LocalPlace: Candidate] {
        guard sends.contains(where: { $0.candidate.joins != nil }) else { return [:] }
        var packages: [LocalPlace: Candidate] = [:]
        for candidate in pass.all {
            if let found = candidate.found, found.state.kind == .package { packages[found.place] = candidate }
        }
        return packages
    }

    /// Who ends this, or wants no traffic, waits for one commit, and not for all of a pass.
    private var goesOn: Bool { !isStopping && core.connection == .live }

    /// Folders before what lies in them; deletions last, and there the other way round.
    private func inOrder(_ sends: [PlannedSend]) -> [PlannedSend] {
        func depth(_ send: PlannedSend) -> Int {
            if let found = send.candidate.found {
                return device.folders.path(of: found.place.folder)?.names.count ?? 0
            }
            return remotePath(of: send.candidate.id).names.count
        }
        let keyed = sends.enumerated().map {
            (offset: $0.offset, depth: depth($0.element), isDeletion: $0.element.isDeletion, send: $0.element)
        }
        return keyed.sorted { left, right in
            if left.isDeletion != right.isDeletion { return right.isDeletion }
            if left.depth != right.depth {
                return left.isDeletion ? left.depth > right.depth : left.depth < right.depth
            }
            return left.offset < right.offset
        }.map(\.send)
    }

    // MARK: Operations

    private func prepare(_ send: PlannedSend, _ pass: Pass) throws -> Prepared? {
        let candidate = send.candidate
        var prepared = Prepared(candidate: candidate, operations: [])
        if send.isAnnouncement {
            guard let found = candidate.found, case .unread(let size) = found.content else { return nil }
            // The same again if the answer was lost.
            let revision = tracker.sending[candidate.id]?.revision ?? device.newRevision()
            let content = FileContent(revision: revision, content: nil, size: size)
            let place = Place(parent: found.parent, name: found.place.name)
            let action = ItemOperation.Action.announce(place: place, content: content, attributes: found.attributes)
            prepared.add(action, nil, as: device.newOperation(), isUnwitnessed: false)
            return prepared
        }
        let isUnwitnessed = candidate.found.map { tracker.unwitnessed.contains($0.place) } ?? false
        let edits = send.actions.contains { if case .edit = $0 { true } else { false } }
        for action in send.actions {
            // Those of an old state that somebody has restored are as old: they count with a content that does.
            if isUnwitnessed, edits, case .attributes = action { continue }
            guard let operation = try operation(action, candidate, pass) else { return nil }
            let sent = tracker.sentLinks.isEmpty ? nil : sentAgain(action, candidate)
            if let sent { prepared.add(sent.action, .edit(base: nil), as: sent.id, isUnwitnessed: false) }
            // A new target waits until it is known what became of that one.
            if sent != nil, case .edit = action { continue }
            let id = unanswered(operation, of: candidate.id) ?? device.newOperation()
            prepared.add(operation, action, as: id, isUnwitnessed: isUnwitnessed, after: sent?.action)
        }
        // What only steps aside brings nothing: the content follows with the edit.
        let bringsContent = prepared.operations.contains { $0.operation.action.content != nil }
        if bringsContent, let read = candidate.read, !read.chunks.isEmpty {
            let known = try baseChunks(candidate)
            var seen: Set<ChunkID> = []
            for entry in read.manifest.entries where !known.contains(entry.chunk) && seen.insert(entry.chunk).inserted {
                if let bytes = read.chunks[entry.chunk] { prepared.chunks.append((entry.chunk, bytes)) }
            }
        }
        return prepared
    }

    /// Chunks of the revision that this one follows: the cloud has them.
    private func baseChunks(_ candidate: Candidate) throws -> Set<ChunkID> {
        guard case .file(let file)? = candidate.synced?.content, let content = file.content,
            let manifest = try device.manifest(content)
        else { return [] }
        return Set(manifest.entries.map(\.chunk))
    }

    private func operation(_ send: Send, _ candidate: Candidate, _ pass: Pass) throws -> ItemOperation.Action? {
        switch send {
        case .create:
            guard let found = candidate.found, let (content, manifest) = contentToSend(candidate) else { return nil }
            var place = placeToSend(found, candidate)
            if crossings[candidate.id] != nil, candidate.remote?.isAnnounced == true || candidate.isNamedLater,
                let name = nameBetween(candidate, in: place.parent, place.name)
            {
                place.name = name
            }
            device.beginCreating(found.state.key, candidate.id)
            return .create(
                place: place,
                content: content,
                attributes: found.attributes,
                manifest: manifest,
                edited: tracker.editedAt[found.place] ?? found.state.changed
            )
        case .edit(let base):
            guard let found = candidate.found, let (content, manifest) = contentToSend(candidate) else { return nil }
            if found.state.linkCount == 1, candidate.formerKey != nil {
                // Should the answer be lost, it is known by its inode, wherever that goes.
                tracker.sentAs[found.state.key] = candidate.id
            }
            return .edit(
                base: base,
                content: content,
                attributes: found.attributes,
                manifest: manifest,
                edited: tracker.editedAt[found.place] ?? found.state.changed
            )
        case .move(let place):
            return .move(to: place)
        case .attributes(let changes):
            return .setAttributes(modified: changes.modified, mode: changes.mode, extended: changes.extended)
        case .delete(let base):
            return .delete(base: base, conflicts: candidate.remote?.conflicts.map(\.revision) ?? [])
        case .revive:
            guard let found = candidate.found else { return nil }
            return .revive(place: placeToSend(found, candidate), attributes: found.attributes)
        }
    }

    /// What others have deleted while it made room here for another, and comes back with what was written to it meanwhile, has its own name.
    private func placeToSend(_ found: Candidate.Found, _ candidate: Candidate) -> Place {
        let place = Place(parent: found.parent, name: found.place.name)
        guard TransitionalName.item(of: place.name) == candidate.id else { return place }
        let known = [candidate.remote?.place.name, candidate.synced?.place.name].compactMap { $0 }
        return Place(parent: place.parent, name: known.first { !TransitionalName.matches($0) } ?? place.name)
    }

    private func contentToSend(_ candidate: Candidate) -> (ItemContent, Manifest)? {
        guard let found = candidate.found else { return nil }
        switch found.content {
        case .folder: return (.folder, Manifest())
        case .symlink(let target): return (.symlink(target: target), Manifest())
        case .unread, .read, .unchanged, .dataless:
            guard let read = candidate.read else { return nil }
            let file = FileContent(
                revision: revision(candidate, read.content, size: read.state.size),
                content: read.content,
                size: read.state.size,
                isPackage: read.state.kind == .package
            )
            return (.file(file), read.manifest)
        }
    }

    /// A fresh id for a content; the same for the same content of an item until it has been committed, so that a commit whose
    /// answer was lost is recognised.
    private func revision(_ candidate: Candidate, _ content: ContentID, size: Int64) -> RevisionID {
        if let known = tracker.sending[candidate.id], known.content == content { return known.revision }
        if tracker.refusedRevisions.contains(candidate.id) { return device.newRevision() }
        // The content of an announcement bears the announced revision, unless the file has grown or shrunk since: others have
        // placeholders of that revision and size.
        // Not where another content may have reached the cloud as that revision: a revision has one content.
        if candidate.synced == nil, case .file(let announced)? = candidate.remote?.content, announced.content == nil,
            announced.size == size, tracker.sending[candidate.id]?.content == nil
        {
            return announced.revision
        }
        // Others have changed it since it was announced: what was announced is a version of it then, by which their placeholders that went
        // elsewhere find their content.
        if candidate.synced == nil, let announced = tracker.sending[candidate.id], announced.content == nil,
            let remote = candidate.remote, remote.content.revision != announced.revision
        {
            return announced.revision
        }
        return device.newRevision()
    }

    /// Written down before it leaves.
    private func noteSending(_ batch: [Prepared]) throws {
        var news: [(item: ItemID, sent: SentRevision)] = []
        var links: [(item: ItemID, sent: SentLink)] = []
        var deletions: [(item: ItemID, sent: SentDeletion)] = []
        for (operation, _) in batch.flatMap(\.operations) {
            switch operation.action {
            case .create(_, .file(let file), _, _, _), .edit(_, .file(let file), _, _, _), .announce(_, let file, _):
                let sent = SentRevision(revision: file.revision, content: file.content)
                if tracker.sending[operation.item] != sent { news.append((operation.item, sent)) }
            case .edit(_, .symlink(let target), _, _, _):
                let sent = SentLink(operation: operation.id, target: target)
                if tracker.sentLinks[operation.item] != sent { links.append((operation.item, sent)) }
            case .delete(let base, _):
                let isLeaving = tracker.leftItems.contains(operation.item)
                let sent = SentDeletion(operation: operation.id, base: base, isLeaving: isLeaving)
                if unansweredDeletions[operation.item] != sent { deletions.append((operation.item, sent)) }
            case .create, .edit, .move, .setAttributes, .revive, .resolve, .restore, .undelete, .discard: break
            }
        }
        try device.write(sending: news)
        for (item, sent) in news { tracker.sending[item] = sent }
        try device.write(sentLinks: links)
        for (item, sent) in links { tracker.sentLinks[item] = sent }
        try device.write(sentDeletions: deletions)
        for (item, sent) in deletions { unansweredDeletions[item] = sent }
    }

    // MARK: Committing

    private func commit(_ batch: [Prepared], _ pass: Pass) async throws {
        var chunks = batch.flatMap(\.chunks)
        if chunks.reduce(0, { $0 + $1.bytes.count }) > Self.offeredBytes, offering.isDue() {
            let lacking = try await device.missing(chunks.map(\.id))
            offering.note(allLacking: chunks.allSatisfy { lacking.contains($0.id) })
            chunks.removeAll { !lacking.contains($0.id) }
        }
        try noteSending(batch)
        let operations = batch.flatMap { $0.operations.map(\.operation) }
        let outcomes = try await device.commit(operations, chunks: chunks)
        pass.answeredBefore = pass.answered.count
        var rest = outcomes[...]
        for prepared in batch {
            for (operation, send) in prepared.operations {
                guard let outcome = rest.popFirst() else { break }
                try note(outcome, operation, send, prepared.candidate, pass)
            }
            lookAgainIfNotAll(prepared.candidate)
        }
        try await resend(batch, outcomes)
    }

    /// What was sent did not tell all: not that the item has moved, as when an edit brings back what others have deleted; or only that, of a
    /// placeholder that stands for another revision.
    private func lookAgainIfNotAll(_ candidate: Candidate) {
        guard candidate.verdict == .sent, let found = candidate.found, let row = candidate.synced else { return }
        let isElsewhere = row.place != Place(parent: found.parent, name: found.place.name)
        let isLeftover = found.state.placeholder.map { $0.revision != row.content.revision } ?? false
        if isElsewhere || isLeftover { candidate.verdict = .again }
    }

    /// The cloud lacked chunks that it was thought to have: they are sent, and the item is looked at again.
    private func resend(_ batch: [Prepared], _ outcomes: [OperationOutcome]) async throws {
        var missing: Set<ChunkID> = []
        for case .missingChunks(let chunks) in outcomes { missing.formUnion(chunks) }
        guard !missing.isEmpty else { return }
        let chunks = batch.flatMap { prepared in
            (prepared.candidate.read?.chunks ?? [:]).filter { missing.contains($0.key) }.map {
                (id: $0.key, bytes: $0.value)
            }
        }.sorted { $0.id < $1.id }
        if !chunks.isEmpty { try await device.upload(chunks) }
    }

    private func note(
        _ outcome: OperationOutcome,
        _ operation: ItemOperation,
        _ send: Send?,
        _ candidate: Candidate,
        _ pass: Pass
    ) throws {
        forgetDeletion(operation.item, pass)
        switch outcome {
        case .committed(let remote):
            pass.answered.append(remote)
            candidate.remote = remote
            if case .delete = operation.action, !remote.isDeleted {
                // It was deleted when this was sent first, and has been brought back since.
                candidate.verdict = forget(candidate, pass)
                return
            }
            guard let send else {
                // Announced: the content follows.
                candidate.verdict = .again
                return
            }
            committed(send, operation, remote, candidate, pass)
        case .missingChunks(let chunks):
            if let found = candidate.found { uploaded[found.place] = nil }
            guard let read = candidate.read, !read.absent.isDisjoint(with: chunks) else {
                candidate.verdict = .again
                return
            }
            partsAreMissing(candidate, read.content)
        case .nameTaken(let rival):
            try nameTaken(by: rival, candidate, pass)
        case .parentMissing:
            // What was sent of a link has not come there.
            forgetSentLink(candidate.id, pass)
            if let parent = candidate.found?.parent { tracker.revivals.insert(parent) }
            candidate.verdict = .later(.milliseconds(200))
            if let parent = candidate.found?.parent, parent != .root { handle(.pendingLoaded([parent], isLast: false)) }
        case .notEmpty:
            candidate.verdict = try folderIsNotEmpty(candidate, pass)
        case .superseded(let remote):
            if remote.isDeleted, let known = candidate.remote, !known.isDeleted, known.position > remote.position {
                // It has been brought back since, and the server was restored from a backup that does not know that.
                isCloudRestored = true
                candidate.verdict = .later(.seconds(1))
                return
            }
            pass.answered.append(remote)
            if case .delete = operation.action {
                candidate.verdict = forget(candidate, pass)
            } else {
                forgetSentLink(candidate.id, pass)
                // A link that leads elsewhere by now, which was not known: what is here goes on beside it.
                candidate.remote = remote
                candidate.verdict = .again
            }
        case .cycle:
            candidate.verdict = try movesIntoItself(candidate, pass)
        case .noSuchItem:
            candidate.verdict = .later(.seconds(1))
            // What it has told of is no more: it was restored from a backup. (Of an announcement it only says that it comes too late.)
            if send != nil, candidate.remote != nil { isCloudRestored = true }
        case .quotaExceeded:
            noteProblem(candidate, "the account's quota is used up")
            candidate.verdict = .failed
        case .invalid(let why):
            if case .file? = operation.action.content, tracker.refusedRevisions.insert(candidate.id).inserted {
                // The cloud may know the revision with another content: an older state of this device does not know that it was sent.
                tracker.sending[candidate.id] = nil
                candidate.verdict = .again
                return
            }
            noteProblem(candidate, "the server refuses it: \(why)")
            candidate.verdict = .parked
        case .skipped:
            // Of what was to be its name as well: the server has put it back.
            let former = candidate.verdict
            try noteBack(candidate, pass)
            // What was refused before this says when it is tried again.
            if candidate.verdict == nil, former == .failed || former == .parked { candidate.verdict = former }
            // What it depended on was refused, and that says what becomes of it; or it was another item, that has to go first.
            if candidate.verdict == nil, candidate.applies.isEmpty { candidate.verdict = .later(.milliseconds(50)) }
        }
    }

    /// What survives is another's: this device forgets that it had the item, and gets it anew.
    func forget(_ candidate: Candidate, _ pass: Pass) -> Verdict {
        pass.changes.removals.append(candidate.id)
        pass.committedDeletions.append(candidate.id)
        admittedDeletions.remove(candidate.id)
        unexplainedFolders[candidate.id] = nil
        // It is in the cloud after all, or others have deleted it.
        tracker.leftItems.remove(candidate.id)
        // What it was here and has left is new wherever it goes.
        if let key = tracker.newItems.key(of: candidate.id) { tracker.newItems.remove(key) }
        if let key = candidate.synced?.local?.key { tracker.freshDeletions.insert(key) }
        if candidate.synced?.content == .folder, let lay = try? device.syncedSubtree(of: candidate.id), !lay.isEmpty {
            // No place leads to what was removed in it: it is looked at by itself, also what this pass takes for gone with its folder.
            lookedAtAfterPass += lay.map(\.id)
        }
        return .again
    }

    private func committed(
        _ send: Send,
        _ operation: ItemOperation,
        _ remote: RemoteItem,
        _ candidate: Candidate,
        _ pass: Pass
    ) {
        if candidate.verdict == nil { candidate.verdict = .sent }
        if case .delete = send {
            tracker.sending[candidate.id] = nil
            admittedDeletions.remove(candidate.id)
            noteSent(deletion: candidate.id)
            unexplainedFolders[candidate.id] = nil
            pass.changes.answered.append(candidate.id)
            if candidate.synced == nil {
                // A program may have asked for its name meanwhile, in a folder that populates itself: that goes again.
                lookedAtAfterPass.append(candidate.id)
            } else {
                pass.changes.removals.append(candidate.id)
            }
            pass.committedDeletions.append(candidate.id)
            return
        }
        // One that gives way is here as it was.
        guard let found = candidate.found, !candidate.givesWay else { return }
        var row = candidate.synced ?? SyncedItem(remote, local: nil)
        // The server may have given it another name, which is still to be applied.
        if candidate.synced == nil { row.place = Place(parent: found.parent, name: found.place.name) }
        row.local = LocalEvidence(found.state)
        switch operation.action {
        case .create(let place, let content, let attributes, _, _):
            row.place = place
            noteName(place.name, candidate)
            row.content = agreedContent(content, remote)
            row.attributes = attributes
            if found.state.kind == .folder, tracker.moves[found.state.key] != nil {
                // It came here from elsewhere: what lies in it may have been taken for something else, or for nothing.
                foldersToScan.insert(found.state.key)
                candidate.verdict = .again
            }
        case .edit(_, let content, let attributes, _, _):
            row.content = agreedContent(content, remote)
            row.attributes = attributes
            // What the cloud has not taken of them is not agreed on.
            if attributes.extended.contains(where: { remote.attributes.extended[$0.key] != $0.value }) {
                row.attributes.extended = candidate.synced?.attributes.extended ?? [:]
            }
            forgetSentLink(candidate.id, pass)
            if case .symlink(let target) = content, found.content != .symlink(target: target) {
                // What a program has made of it since follows.
                row.local = row.local?.untrusted
                candidate.verdict = .again
            }
        case .move(let place):
            // Until it has the name that follows, nothing else is agreed on.
            if !TransitionalName.matches(place.name) { row.place = place }
            noteName(place.name, candidate)
        case .setAttributes(let modified, let mode, let extended):
            if let modified { row.attributes.modified = modified }
            if let mode { row.attributes.mode = mode }
            if let extended { row.attributes.extended = extended }
        case .revive(let place, let attributes):
            row.place = place
            row.attributes = attributes
            tracker.revivals.remove(candidate.id)
        case .announce, .delete, .resolve, .restore, .undelete, .discard: break
        }
        // Its name or attributes may have gone ahead: what it has become is still to be told, also if this ends before that.
        if let local = candidate.local, !Planner.agrees(local.content, with: row.content) {
            row.local = row.local?.untrusted
        }
        candidate.synced = row
        pass.setRow(row)
        if let read = candidate.read { pass.manifests[read.content] = read.manifest }
        pass.written.append(found.place)
        if case .file? = operation.action.content {
            tracker.sending[candidate.id] = nil
            tracker.refusedRevisions.remove(candidate.id)
            pass.changes.answered.append(candidate.id)
        }
    }

    /// What both sides now agree on. If the server knew the same content as another revision, that one; if ours lost against a
    /// later edit, still ours, so that the winner is what differs and is applied.
    private func agreedContent(_ sent: ItemContent, _ remote: RemoteItem) -> ItemContent {
        guard case .file(let ours) = sent, case .file(let theirs) = remote.content else { return sent }
        return ours.content == theirs.content ? remote.content : sent
    }
}

extension ItemOperation.Action {
    /// What becomes the item's content.
    fileprivate var content: ItemContent? {
        switch self {
        case .create(_, let content, _, _, _), .edit(_, let content, _, _, _): content
        case .announce(_, let content, _): .file(content)
        case .move, .setAttributes, .delete, .revive, .resolve, .restore, .undelete, .discard: nil
        }
    }
}
