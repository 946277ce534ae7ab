package import CatalogModel
internal import GRDB
package import UbiquityModel

extension SQLiteCatalog {
    package func accounts() async throws(CatalogError) -> [AccountInfo] {
        try await read { db in
            var result = [AccountInfo]()
            let sql = """
                SELECT name, quota,
                    (SELECT COALESCE(SUM(bytes), 0) FROM containers WHERE account = accounts.number AND removed IS NULL),
                    (SELECT COUNT(*) FROM devices WHERE account = accounts.number AND revoked IS NULL),
                    (SELECT COUNT(*) FROM containers WHERE account = accounts.number AND removed IS NULL)
                FROM accounts WHERE removed IS NULL ORDER BY name
                """
            try db.each(sql, []) { row in
                result.append(
                    AccountInfo(
                        name: try row.value(0),
                        quota: try row.optional(1),
                        used: try row.value(2),
                        devices: try row.value(3),
                        containers: try row.value(4)
                    )
                )
            }
            return result
        }
    }

    package func addAccount(_ name: String, quota: Int64?, now: Timestamp) async throws(CatalogError) {
        try await write { db in
            guard try !db.exists("SELECT 1 FROM accounts WHERE name = ? AND removed IS NULL", [name]) else {
                throw CatalogError.accountExists(name)
            }
            try db.run("INSERT INTO accounts (name, quota, created) VALUES (?, ?, ?)", [name, quota, now.nanoseconds])
        }
    }

    package func removeAccount(_ name: String, now: Timestamp) async throws(CatalogError) {
        try await write { db in
            let number = try db.accountNumber(name)
            try db.run("UPDATE accounts SET removed = ? WHERE number = ?", [now.nanoseconds, number])
            try db.run(
                "UPDATE devices SET revoked = ? WHERE account = ? AND revoked IS NULL",
                [now.nanoseconds, number]
            )
            try db.run(
                "UPDATE containers SET removed = ? WHERE account = ? AND removed IS NULL",
                [now.nanoseconds, number]
            )
            try db.run("DELETE FROM invitations WHERE account = ?", [number])
        }
    }

    package func addInvitation(_ invitation: Invitation, account: String) async throws(CatalogError) {
        try await write { db in try db.add(invitation, account: try db.accountNumber(account), inviter: nil) }
    }

    package func addInvitation(_ invitation: Invitation, by token: TokenHash) async throws(CatalogError) {
        try await write { db in
            let access = try db.access(token)
            var invitation = invitation
            if access.grant.isReadOnly { invitation.grant.isReadOnly = true }
            for container in invitation.grant.containers ?? [] {
                _ = try db.authorize(Scope(token: token, container: container))
            }
            if invitation.grant.containers == nil { invitation.grant.containers = access.grant.containers }
            try db.add(invitation, account: access.account, inviter: access.device)
        }
    }

    package func join(_ secret: SecretHash, as device: NewDevice, now: Timestamp) async throws(CatalogError) -> Access {
        try await write { db in
            let sql = """
                SELECT account, read_only, containers, expires, used, inviter IS NULL
                    OR EXISTS (SELECT 1 FROM devices WHERE id = inviter AND revoked IS NULL)
                FROM invitations WHERE secret = ?
                """
            guard let row = try db.first(sql, [secret.blob]) else { throw CatalogError.wrongCode }
            guard try (row.optional(4) as Int64?) == nil else { throw CatalogError.usedCode }
            guard try now < row.time(3) else { throw CatalogError.expiredCode }
            // Its codes went with the device; whatever else may revoke one, they let nobody in.
            guard try row.value(5) else { throw CatalogError.wrongCode }
            let grant = Grant(isReadOnly: try row.value(1), containers: GrantedContainers.decode(try row.optional(2)))
            let account: Int64 = try row.value(0)
            try db.run("UPDATE invitations SET used = ? WHERE secret = ?", [now.nanoseconds, secret.blob])
            try db.add(device, account: account, grant, now: now)
            return try db.access(device.token)
        }
    }
}

extension Database {
    fileprivate func accountNumber(_ name: String) throws -> Int64 {
        guard let row = try first("SELECT number FROM accounts WHERE name = ? AND removed IS NULL", [name]) else {
            throw CatalogError.noSuchAccount(name)
        }
        return try row.value(0)
    }

    /// - Parameter inviter: `nil` for the server's administrator.
    fileprivate func add(_ invitation: Invitation, account: Int64, inviter: DeviceID?) throws {
        try run(
            "INSERT INTO invitations (secret, account, inviter, read_only, containers, expires) VALUES (?, ?, ?, ?, ?, ?)",
            [
                invitation.secret.blob, account, inviter?.blob, invitation.grant.isReadOnly,
                GrantedContainers.encode(invitation.grant.containers), invitation.expires.nanoseconds,
            ]
        )
    }

    /// Adds a device under its name, or under that name with a number if the account has such a device.
    func add(_ device: NewDevice, account: Int64, _ grant: Grant, now: Timestamp) throws {
        let name = try freeDeviceName(device.name, account: account)
        try run(
            """
            INSERT INTO devices (id, account, name, token, nonce, former_nonce, read_only, containers, joined, seen)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                device.id.blob, account, name, device.token.blob, device.nonce.blob, device.formerNonce?.blob,
                grant.isReadOnly,
                GrantedContainers.encode(grant.containers), now.nanoseconds, now.nanoseconds,
            ]
        )
    }

    /// The name, or that name with a number if the account has such a device.
    func freeDeviceName(_ wanted: String, account: Int64) throws -> String {
        var name = wanted
        var number = 1
        while try exists("SELECT 1 FROM devices WHERE account = ? AND name = ? AND revoked IS NULL", [account, name]) {
            number += 1
            name = "\(wanted) \(number)"
        }
        return name
    }
}
