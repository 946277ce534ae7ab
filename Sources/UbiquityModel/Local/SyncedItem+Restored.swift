extension SyncedItem {
    /// What still counts as agreed on with a server that does not know what this device knows of it: it was restored from a backup, or
    /// its log was cut. Nothing here is reverted or deleted for its word: what may be newer here differs from the new row, and is offered.
    ///
    /// - Parameters:
    ///   - item: What the server says now; `nil` if it has never heard of it.
    ///   - known: What it had said last.
    /// - Returns: `nil` if the row stays as it is.
    package func agreed(withRestored item: RemoteItem?, known: RemoteItem?) -> SyncedItem? {
        var row = self
        if let item, !item.isDeleted {
            // The log had gone on from there, as far as one can tell.
            let isOlder = known.map { $0.position > item.position } ?? false
            if isOlder, place == known?.place { row.place = item.place }
            if isOlder, attributes == known?.attributes { row.attributes = item.attributes }
            if content.differs(from: item.content) {
                if isOlder, content == known?.content { row.content = item.content } else { row.forgetContent() }
            }
        } else {
            row.forgetContent()
        }
        guard row != self else { return nil }
        // No inode is as it was when that was agreed on.
        row.local = row.local?.untrusted
        if row.content != content { row.local?.modified = Timestamp(nanoseconds: 0) }
        return row
    }

    /// The server tells what it is: a state that it has had, or one that nobody else has any more.
    private mutating func forgetContent() {
        guard case .file(var file) = content else { return }
        file.content = nil
        content = .file(file)
    }
}

extension ItemContent {
    /// Another revision of the same content is the same.
    fileprivate func differs(from other: ItemContent) -> Bool {
        guard case .file(let one) = self, case .file(let two) = other, one.content != nil else { return self != other }
        return one.content != two.content
    }
}
