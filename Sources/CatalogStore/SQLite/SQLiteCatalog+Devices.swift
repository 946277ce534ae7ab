package import CatalogModel
internal import FoundationEssentials
internal import GRDB
package import UbiquityModel

extension SQLiteCatalog {
    package func access(_ token: TokenHash) async throws(CatalogError) -> Access {
        try await read { db in try db.access(token) }
    }

    /// Every session renews the nonce. The one before is good too until the device has committed something: the answer that
    /// carried the new one may have been lost. Any other nonce is that of a restored or cloned device, which keeps the name: it goes on
    /// with what was done under that. What it once was, and is seldom alive, gets a number.
    package func openSession(
        _ token: TokenHash,
        nonce: [UInt8],
        fresh: FreshCredentials,
        now: Timestamp
    ) async throws(CatalogError) -> CatalogSession {
        do throws(CatalogError) {
            return try await renewSession(token, nonce: nonce, fresh: fresh, now: now)
        } catch {
            guard case .noSpace = error else { throw error }
            return try await keepSession(token, nonce: nonce)
        }
    }

    /// On a full disk nothing can be written down, but all of it can be read: as if the answer with the fresh nonce had been lost.
    private func keepSession(_ token: TokenHash, nonce: [UInt8]) async throws(CatalogError) -> CatalogSession {
        try await read { db in
            let access = try db.access(token)
            let sql = "SELECT nonce, former_nonce FROM devices WHERE id = ?"
            let presented = Data(nonce)
            guard let row = try db.first(sql, [access.device.blob]),
                try presented == row.value(0) || presented == row.optional(1)
            else { throw CatalogError.noSpace }
            return CatalogSession(access: access, isRestored: false, keptNonce: try row.bytes(0))
        }
    }

    private func renewSession(
        _ token: TokenHash,
        nonce: [UInt8],
        fresh: FreshCredentials,
        now: Timestamp
    ) async throws(CatalogError) -> CatalogSession {
        try await write { db in
            let access = try db.access(token)
            guard let row = try db.first("SELECT nonce, former_nonce FROM devices WHERE id = ?", [access.device.blob])
            else {
                throw CatalogError.unauthorized
            }
            let presented = Data(nonce)
            if try presented == row.value(0) || presented == row.optional(1) {
                try db.run(
                    "UPDATE devices SET nonce = ?, former_nonce = ?, seen = ? WHERE id = ?",
                    [fresh.nonce.blob, presented, now.nanoseconds, access.device.blob]
                )
                return CatalogSession(access: access, isRestored: false)
            }
            return try db.openSession(ofRestored: access, nonce: nonce, fresh: fresh, now: now)
        }
    }

    package func devices(for token: TokenHash) async throws(CatalogError) -> [DeviceRecord] {
        try await read { db in
            let access = try db.access(token)
            var result = [DeviceRecord]()
            let sql = "SELECT id, name, joined, seen, revoked FROM devices WHERE account = ? ORDER BY joined, name, id"
            try db.each(sql, [access.account]) { row in
                let id: DeviceID = try row.identifier(0)
                result.append(
                    DeviceRecord(
                        id: id,
                        name: try row.value(1),
                        joined: try row.time(2),
                        seen: try row.time(3),
                        isRevoked: try (row.optional(4) as Int64?) != nil,
                        isCurrent: id == access.device
                    )
                )
            }
            return result
        }
    }

    package func revoke(_ name: String, by token: TokenHash, now: Timestamp) async throws(CatalogError) -> DeviceID {
        try await write { db in
            let access = try db.access(token)
            let sql = "SELECT id FROM devices WHERE account = ? AND name = ? AND revoked IS NULL"
            guard let row = try db.first(sql, [access.account, name]) else { throw CatalogError.noSuchDevice(name) }
            let id: DeviceID = try row.identifier(0)
            // A device may always remove itself; others only if it was let in without limits.
            guard id == access.device || !access.grant.isLimited else { throw CatalogError.readOnly }
            try db.revoke(id, now: now)
            return id
        }
    }

    package func revokeSelf(_ token: TokenHash, now: Timestamp) async throws(CatalogError) -> Access {
        try await write { db in
            let access = try db.access(token)
            try db.revoke(access.device, now: now)
            return access
        }
    }
}

extension Database {
    fileprivate func openSession(
        ofRestored access: Access,
        nonce: [UInt8],
        fresh: FreshCredentials,
        now: Timestamp
    ) throws -> CatalogSession {
        var token = fresh.token
        if let proposed = fresh.proposed {
            // It has asked before, and the answer was lost: that identity is its own as long as nobody has used it.
            let sql = """
                UPDATE devices SET nonce = ?, seen = ?
                WHERE token = ? AND account = ? AND former_nonce = ? AND revoked IS NULL
                """
            try run(sql, [fresh.nonce.blob, now.nanoseconds, proposed.blob, access.account, nonce.blob])
            if changesCount > 0 {
                return CatalogSession(access: try self.access(proposed), isRestored: true, hasProposedToken: true)
            }
            if try !exists("SELECT 1 FROM devices WHERE token = ?", [proposed.blob] as StatementArguments) {
                token = proposed
            }
        }
        let device = NewDevice(
            id: fresh.device,
            name: access.deviceName,
            token: token,
            nonce: fresh.nonce,
            formerNonce: nonce
        )
        let formerName = try freeDeviceName(access.deviceName, account: access.account)
        try run("UPDATE devices SET name = ? WHERE id = ?", [formerName, access.device.blob])
        try add(device, account: access.account, access.grant, now: now)
        // Two now share the former identity's past: a code may be that of either.
        try removeInvitations(by: access.device)
        return CatalogSession(
            access: try self.access(token),
            isRestored: true,
            hasProposedToken: token == fresh.proposed
        )
    }

    fileprivate func revoke(_ device: DeviceID, now: Timestamp) throws {
        try run("UPDATE devices SET revoked = ? WHERE id = ?", [now.nanoseconds, device.blob])
        try removeInvitations(by: device)
    }

    /// The codes that the device has made are wrong from now on.
    fileprivate func removeInvitations(by device: DeviceID) throws {
        try run("DELETE FROM invitations WHERE inviter = ?", [device.blob])
    }
}
