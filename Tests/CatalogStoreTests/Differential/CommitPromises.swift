import CatalogModel
import MemoryCatalog
import Reconciliation
import UbiquityModel

/// What the commit rules promise, whatever devices send (architecture section 5): looked for in what a catalogue answers and lists.
struct CommitPromises {
    private let scope: Scope
    /// Each item as it was last answered.
    private var items: [ItemID: RemoteItem] = [:]
    /// Contents that the cloud has taken over.
    private var contents: [ItemID: Set<ContentID>] = [:]

    init(scope: Scope) { self.scope = scope }

    /// - Returns: which promise was broken.
    mutating func violation(_ answer: CommitAnswer, to request: CommitRequest, _ state: CatalogState) -> String? {
        for (entry, outcome) in zip(request.entries, answer.outcomes) {
            guard case .operation(let operation) = entry, case .committed(let item) = outcome else { continue }
            if let violation = self.violation(operation, items[item.id], item) { return "\(violation): \(operation)" }
            items[item.id] = item
            if let content = operation.action.content { contents[item.id, default: []].insert(content) }
        }
        return violation(of: state)
    }

    // MARK: One operation

    private func violation(_ operation: ItemOperation, _ former: RemoteItem?, _ item: RemoteItem) -> String? {
        let visible = Set(item.conflicts.map(\.content) + (item.currentContent.map { [$0] } ?? []))
        if let sent = operation.action.content, !visible.contains(sent), contents[item.id]?.contains(sent) != true {
            return "a content was taken over and is not to be seen"
        }
        guard let former else { return nil }
        if case .resolve = operation.action { return nil }
        for loser in former.conflicts where !visible.contains(loser.content) {
            if case .edit(let base, _, _, _, _) = operation.action, base == loser.revision { continue }
            return "a conflict version went away and nobody resolved it"
        }
        if case .edit(let base, _, _, _, _) = operation.action, !former.isDeleted, base != former.content.revision,
            let content = former.currentContent, !visible.contains(content)
        {
            return "an edit displaced what its author had not seen"
        }
        return nil
    }

    // MARK: The whole container

    private func violation(of state: CatalogState) -> String? {
        guard let page = try? state.changes(scope, since: nil, limit: .max - 1), !page.hasMore else {
            return "there is no listing"
        }
        let items = Dictionary(uniqueKeysWithValues: page.entries.map { ($0.item.id, $0.item) })
        var places = Set<Place>()
        for item in items.values where !item.isDeleted {
            if !item.isAnnounced, !places.insert(item.place).inserted { return "two items of one name" }
            if let violation = self.violation(ofPlaceOf: item, items) { return violation }
            if let violation = self.violation(ofVersionsOf: item, state) { return violation }
        }
        for (item, contents) in contents {
            let versions = (try? state.versions(item, scope)) ?? []
            if !contents.isSubset(of: versions.map(\.content)) { return "a content was forgotten" }
        }
        return nil
    }

    private func violation(ofPlaceOf item: RemoteItem, _ items: [ItemID: RemoteItem]) -> String? {
        var next = item.place.parent
        for _ in 0...items.count where next != .root {
            guard let folder = items[next], !folder.isDeleted, folder.content == .folder else {
                return "a live item lies in what is no live folder"
            }
            next = folder.place.parent
        }
        return next == .root ? nil : "a cycle"
    }

    private func violation(ofVersionsOf item: RemoteItem, _ state: CatalogState) -> String? {
        let versions = (try? state.versions(item.id, scope)) ?? []
        let conflicts = versions.filter { $0.kind == .conflict }
        if Set(conflicts) != Set(item.conflicts) { return "conflicts differ from the versions" }
        if Set(conflicts.map(\.content)).count != conflicts.count { return "two losers of one content" }
        let current = versions.filter { $0.kind == .current }
        guard let content = item.currentContent, let revision = item.content.revision else {
            return current.isEmpty ? nil : "a current version of what has no content"
        }
        guard current.map(\.revision) == [revision], current.map(\.content) == [content] else {
            return "another version is said to be current"
        }
        let wholeness = try? state.wholeness([(item.id, revision)], scope)
        return wholeness?.first?.isKnown == true ? nil : "the current content is not whole"
    }
}

extension RemoteItem {
    fileprivate var currentContent: ContentID? {
        if case .file(let file) = content { return file.content }
        return nil
    }
}

extension ItemOperation.Action {
    /// Of the file that it brings.
    fileprivate var content: ContentID? {
        switch self {
        case .create(_, .file(let file), _, _, _), .edit(_, .file(let file), _, _, _): file.content
        case .create, .edit, .announce, .move, .setAttributes, .delete, .revive, .resolve, .restore, .undelete,
            .discard:
            nil
        }
    }
}
