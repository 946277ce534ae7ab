internal import SyncEngine
internal import UbiquityControl
internal import UbiquityModel

extension UbiquityService {
    func deleted() async throws(ControlError) -> [DeletedReport] {
        try await allDeleted().map { present, item in
            let kind =
                switch item.item.content.kind {
                case .file: "file"
                case .folder: "folder"
                case .symlink: "symlink"
                case .package: "package"
                }
            return DeletedReport(
                id: item.item.id.description,
                container: present.entry.container,
                path: item.path,
                deleted: item.deleted.nanoseconds,
                device: item.device,
                kind: kind,
                size: item.item.content.size
            )
        }
    }

    func undelete(_ request: UndeleteRequest) async -> [PathOutcome<Nothing>] {
        let all: [(MountedContainer, DeletedItem)]
        do throws(ControlError) {
            all = try await allDeleted()
        } catch {
            return request.items.map { PathOutcome(ControlPath($0), error) }
        }
        let ids = DeletedIDs(all.map { $0.1.item.id.description })
        let found = request.items.map { text in Result { () throws(ControlError) in all[try ids.index(text)] } }
        let wanted = found.compactMap { try? $0.get() }
        var failures: [ItemID: EngineError] = [:]
        for present in present {
            let items = wanted.filter { $0.0.engine === present.engine }.map(\.1.item.id)
            guard !items.isEmpty else { continue }
            do throws(EngineError) {
                let deleted = all.filter { $0.0.engine === present.engine }.map(\.1)
                failures.merge(try await present.engine.undelete(items, among: deleted)) { first, _ in first }
            } catch {
                for item in items { failures[item] = error }
            }
        }
        return zip(request.items, found).map { text, found in
            do throws(ControlError) {
                let id = try found.get().1.item.id
                if let failure = failures[id] { throw ControlError(text, failure) }
                return PathOutcome(ControlPath(text), Nothing())
            } catch {
                return PathOutcome(ControlPath(text), error)
            }
        }
    }

    /// The ids of what is deleted, as people type them; of many that are asked for each is found at once.
    private struct DeletedIDs {
        private let texts: [String]
        private let whole: [String: Int]

        init(_ texts: [String]) {
            self.texts = texts
            whole = Dictionary(zip(texts, texts.indices)) { first, _ in first }
        }

        /// The one item whose id is, or begins, so.
        func index(_ text: String) throws(ControlError) -> Int {
            let wanted = text.lowercased()
            if let index = whole[wanted] { return index }
            let found = texts.indices.filter { !wanted.isEmpty && texts[$0].hasPrefix(wanted) }
            guard let first = found.first else {
                throw ControlError(text, "no deleted item has this id", remedy: "`ubiquity deleted list` lists them")
            }
            guard found.count == 1 else { throw ControlError(text, "\(found.count) deleted items' ids begin with it") }
            return first
        }
    }

    func heldDeletions(_ request: HeldDeletionsRequest) async throws(ControlError) {
        try await awaitMounts()
        var heldAny = false
        for present in present where await present.engine.status().heldDeletionCount > 0 {
            heldAny = true
            do throws(EngineError) {
                if request.confirms {
                    await present.engine.confirmDeletions()
                } else {
                    try await present.engine.undoDeletions()
                }
            } catch { throw ControlError(present.entry.container, error) }
        }
        if !heldAny { throw ControlError("deleted", "no deletions are held") }
    }

    private func allDeleted() async throws(ControlError) -> [(MountedContainer, DeletedItem)] {
        try await awaitMounts()
        var result = [(MountedContainer, DeletedItem)]()
        for present in present {
            do throws(EngineError) {
                for item in try await present.engine.deleted() { result.append((present, item)) }
            } catch {
                throw ControlError(present.entry.container, error)
            }
        }
        return result
    }
}
