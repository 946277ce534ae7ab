internal import Crypto
internal import FoundationEssentials
internal import GRDB
internal import Reconciliation
internal import UbiquityModel

extension SQLiteCatalog {
    package func commit(_ request: CommitRequest, _ scope: Scope) async throws(CatalogError) -> CommitAnswer {
        try await write { db in
            let (access, container) = try db.authorizeWriting(scope)
            let fits = try db.add(request.chunks, container: container.number, account: access.account)
            let context = CommitContext(
                device: access.deviceName,
                now: request.now,
                deviceClock: request.deviceClock,
                isQuotaExceeded: request.isQuotaExceeded || !fits
            )
            var batch = try CommitBatch(db: db, container: container.number, context: context)
            let outcomes = try request.entries.map { try batch.perform($0) }
            try batch.finish(device: access.device)
            return CommitAnswer(
                outcomes: outcomes,
                position: batch.head,
                container: container.number,
                isChanged: batch.isChanged
            )
        }
    }
}

/// Commits the operations of one request, in order, within the transaction of its caller.
private struct CommitBatch {
    private let db: Database
    private let container: Int64
    private let context: CommitContext
    private let view: SQLiteCommitView
    private let rules: CommitRules<SQLiteCommitView>
    private var dependencies = BatchDependencies()
    private var entries = SHA256()
    private let former: LogPosition
    private(set) var head: LogPosition

    init(db: Database, container: Int64, context: CommitContext) throws {
        self.db = db
        self.container = container
        self.context = context
        view = SQLiteCommitView(db: db, container: container)
        rules = CommitRules(view: view, context: context)
        former = try db.head(container: container)
        head = former
        entries.update(data: former.hash)
    }

    var isChanged: Bool { head.counter != former.counter }

    mutating func perform(_ entry: CommitRequest.Entry) throws -> OperationOutcome {
        switch entry {
        case .refused(let item, let reason):
            let outcome = OperationOutcome.invalid(reason)
            if let item { dependencies.record(item, outcome) }
            return outcome
        case .operation(let operation):
            let outcome = dependencies.isBlocked(operation) ? .skipped : try perform(operation)
            dependencies.record(operation.item, outcome)
            return outcome
        }
    }

    private mutating func perform(_ operation: ItemOperation) throws -> OperationOutcome {
        if try db.exists("SELECT 1 FROM operations WHERE container = ? AND id = ?", [container, operation.id.blob]) {
            // A request whose answer was lost: nothing is done twice.
            guard let item = try view.item(operation.item) else { return .noSuchItem }
            return .committed(item)
        }
        switch try rules.decide(operation) {
        case .answer(let outcome):
            // An operation that found nothing to change was done too, and must not do more when it is repeated later.
            if case .committed = outcome { try remember(operation) }
            return outcome
        case .change(let change):
            let item = try write(change)
            try remember(operation)
            log(item, operation)
            return .committed(item)
        }
    }

    private mutating func write(_ change: CommitChange) throws -> RemoteItem {
        head.counter += 1
        var item = change.item
        item.position = head.counter
        let exists = try db.exists("SELECT 1 FROM items WHERE container = ? AND id = ?", [container, item.id.blob])
        let deleted = item.isDeleted ? (at: context.now, by: context.device) : nil
        try ItemRows.put(item, container: container, exists: exists, deleted: deleted, db)
        for revision in change.revisions { try put(revision) }
        if let content = change.content {
            try db.run(
                "INSERT INTO contents (container, id, manifest) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [container, content.id.blob, content.manifest.encoded.blob]
            )
        }
        return item
    }

    private func put(_ revision: StoredRevision) throws {
        let version = revision.version
        try db.run(
            """
            INSERT INTO revisions (container, id, item, kind, base, content, size, edited, modified, device, name)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (container, id) DO UPDATE SET
                kind = excluded.kind, base = excluded.base, content = excluded.content, size = excluded.size,
                edited = excluded.edited, modified = excluded.modified, device = excluded.device, name = excluded.name
                WHERE item = excluded.item
            """,
            [
                container, version.revision.blob, revision.item.blob, Int64(version.kind.rawValue), revision.base?.blob,
                version.content.blob, version.size, version.edited.nanoseconds, version.modified.nanoseconds,
                version.device,
                version.name.blob,
            ]
        )
        // The rules refuse it; a revision that changed its item would be lost to the other.
        guard db.changesCount == 1 else {
            throw CatalogError.failed("the revision \(version.revision) belongs to another item")
        }
    }

    private func remember(_ operation: ItemOperation) throws {
        try db.run("INSERT INTO operations (container, id) VALUES (?, ?)", [container, operation.id.blob])
    }

    private mutating func log(_ item: RemoteItem, _ operation: ItemOperation) {
        withUnsafeBytes(of: item.position.bigEndian) { entries.update(bufferPointer: $0) }
        entries.update(data: item.id.bytes)
        entries.update(data: operation.id.bytes)
    }

    /// Writes the container's new head. The first commit after a session also tells that its nonce has arrived.
    mutating func finish(device: DeviceID) throws {
        try db.run("UPDATE devices SET former_nonce = NULL WHERE id = ? AND former_nonce IS NOT NULL", [device.blob])
        guard isChanged else { return }
        head.hash = Array(entries.finalize())
        try db.run(
            "UPDATE containers SET counter = ?, hash = ? WHERE number = ?",
            [Int64(bitPattern: head.counter), head.hash.blob, container]
        )
        try db.run(
            "INSERT INTO log (container, position, hash) VALUES (?, ?, ?)",
            [container, Int64(bitPattern: head.counter), head.hash.blob]
        )
    }
}

extension Database {
    /// The container's newest position.
    func head(container: Int64) throws -> LogPosition {
        guard let row = try first("SELECT counter, hash FROM containers WHERE number = ?", [container]) else {
            throw CatalogError.failed("a container has no row")
        }
        return LogPosition(counter: UInt64(bitPattern: row[0] as Int64), hash: row.bytes(1))
    }
}
