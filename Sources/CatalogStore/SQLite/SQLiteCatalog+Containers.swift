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
                INSERT INTO containers (account, name, key, layout, case_insensitive, counter, hash, bytes, created,
                    packages_added, packages_removed)
                VALUES (?, ?, ?, ?, ?, 0, ?, 0, ?, ?, ?)
                """,
                [
                    access.account, container.id.text, container.key.blob, container.layout.rawValue,
                    container.isCaseInsensitive, Data(), now.nanoseconds,
                    Extensions.encode(container.packages.added), Extensions.encode(container.packages.removed),
                ]
            )
            return try db.authorize(Scope(token: token, container: container.id)).container
        }
    }

    package func declarePackages(
        _ change: PackageDeclaration,
        _ scope: Scope
    ) async throws(CatalogError) -> CatalogContainer {
        try await write { db in
            var container = try db.authorizeWriting(scope).container
            let packages = container.info.packages.applying(change)
            guard packages.count <= PackageDeclaration.limit else {
                throw CatalogError.tooManyExtensions(limit: PackageDeclaration.limit)
            }
            try db.run(
                "UPDATE containers SET packages_added = ?, packages_removed = ? WHERE number = ?",
                [Extensions.encode(packages.added), Extensions.encode(packages.removed), container.number]
            )
            container.info.packages = packages
            return container
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
