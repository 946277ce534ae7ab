package import CatalogModel
internal import GRDB
internal import Reconciliation
internal import UbiquityModel

extension SQLiteCatalog {
    package func commit(_ request: CommitRequest, _ scope: Scope) async throws(CatalogError) -> CommitAnswer {
        let (time, hasPack) = (kept(request.now), hasPack)
        return try await write { db in
            let (access, container) = try db.authorizeWriting(scope)
            let added = try db.add(
                request.chunks,
                container: container.number,
                account: access.account,
                hasPack: hasPack
            )
            let context = CommitContext(
                device: access.deviceName,
                now: request.now,
                deviceClock: request.deviceClock,
                isQuotaExceeded: request.isQuotaExceeded || added == nil,
                discardsFormer: request.discardsFormer
            )
            let head = try db.head(container: container.number)
            var batch = CommitBatch(after: head.counter, context: context)
            var store = try SQLiteCommitStore(
                db: db,
                container: container.number,
                isCaseInsensitive: container.info.isCaseInsensitive,
                time: time,
                added: added?.records ?? [:],
                hasPack: hasPack
            )
            let outcomes = try request.entries.map { try batch.perform($0, in: &store) }
            let named = store.named
            let unnamed = (added?.chunks ?? []).filter { !named.contains($0) }
            try db.offer(unnamed, container: container.number, now: time)
            // The first commit that knows a session's nonce tells that it has arrived. Another container's connection may not have heard of it.
            try db.forgetFormerNonce(of: access.device, knowing: request.nonce)
            let position = head.following(batch.log)
            if !batch.log.isEmpty { try db.setHead(container: container.number, to: position) }
            return CommitAnswer(
                outcomes: outcomes,
                position: position,
                container: container.number,
                isChanged: !batch.log.isEmpty
            )
        }
    }
}

extension Database {
    /// The container's newest position.
    func head(container: Int64) throws -> LogPosition {
        guard let row = try first("SELECT counter, hash FROM containers WHERE number = ?", [container]) else {
            throw CatalogError.failed("a container has no row")
        }
        return LogPosition(counter: try row.unsigned(0), hash: try row.bytes(1))
    }

    fileprivate func setHead(container: Int64, to head: LogPosition) throws {
        try run(
            "UPDATE containers SET counter = ?, hash = ? WHERE number = ?",
            [Int64(bitPattern: head.counter), head.hash.blob, container]
        )
        try run(
            "INSERT INTO log (container, position, hash) VALUES (?, ?, ?)",
            [container, Int64(bitPattern: head.counter), head.hash.blob]
        )
    }

    fileprivate func forgetFormerNonce(of device: DeviceID, knowing nonce: [UInt8]) throws {
        let sql = "UPDATE devices SET former_nonce = NULL WHERE id = ? AND former_nonce IS NOT NULL"
        if nonce.isEmpty { return try run(sql, [device.blob]) }
        try run(sql + " AND nonce = ?", [device.blob, nonce.blob])
    }
}
