package import CatalogModel
internal import FoundationEssentials
internal import GRDB
package import UbiquityModel

extension SQLiteCatalog {
    package func containers(for token: TokenHash) async throws(CatalogError) -> [CatalogContainer] {
        try await read { db in
            let access = try db.access(token)
            var result = [CatalogContainer]()
            let sql =
                "SELECT \(Database.containerColumns) FROM containers WHERE account = ? AND removed IS NULL ORDER BY name"
            try db.each(sql, [access.account]) { row in
                let container = try db.container(row, access.grant)
                if access.grant.allows(container.info.id) { result.append(container) }
            }
            return result
        }
    }

    package func createContainer(
        _ container: ContainerInfo,
        by token: TokenHash,
        now: Timestamp
    ) async throws(CatalogError) -> CatalogContainer {
        try await write { db in
            let access = try db.access(token)
            guard !access.grant.isLimited else { throw CatalogError.readOnly }
            let taken = "SELECT 1 FROM containers WHERE account = ? AND name = ? AND removed IS NULL"
            guard try !db.exists(taken, [access.account, container.id.text]) else {
                throw CatalogError.containerExists(container.id)
            }
            try db.run(
                """
                INSERT INTO containers (account, name, key, layout, case_insensitive, counter, hash, bytes, created)
                VALUES (?, ?, ?, ?, ?, 0, ?, 0, ?)
                """,
                [
                    access.account, container.id.text, container.key.blob, container.layout.rawValue,
                    container.isCaseInsensitive, Data(), now.nanoseconds,
                ]
            )
            return try db.authorize(Scope(token: token, container: container.id)).container
        }
    }

    /// The rows stay until they are collected; the name is free at once.
    package func removeContainer(_ scope: Scope, now: Timestamp) async throws(CatalogError) {
        let time = kept(now)
        try await write { db in
            let (access, container) = try db.authorize(scope)
            guard !access.grant.isLimited else { throw CatalogError.readOnly }
            try db.run("UPDATE containers SET removed = ? WHERE number = ?", [time.nanoseconds, container.number])
        }
    }
}
