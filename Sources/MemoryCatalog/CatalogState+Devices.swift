package import CatalogModel
package import UbiquityModel

extension CatalogState {
    package mutating func openSession(
        _ token: TokenHash,
        nonce: [UInt8],
        fresh: FreshCredentials,
        now: Timestamp
    ) throws(CatalogError) -> CatalogSession {
        let access = try access(token)
        if let device = devices[token], nonce == device.nonce || nonce == device.formerNonce {
            devices[token]?.nonce = fresh.nonce
            devices[token]?.formerNonce = nonce
            devices[token]?.seen = now
            return CatalogSession(access: access, isRestored: false)
        }
        if let proposed = fresh.proposed, let device = devices[proposed], !device.isRevoked,
            device.account == access.account, device.formerNonce == nonce
        {
            // It has asked before, and the answer was lost: that identity is its own as long as nobody has used it.
            devices[proposed]?.nonce = fresh.nonce
            devices[proposed]?.seen = now
            return CatalogSession(access: try self.access(proposed), isRestored: true, hasProposedToken: true)
        }
        return try openSession(ofRestored: access, token, nonce: nonce, fresh: fresh, now: now)
    }

    private mutating func openSession(
        ofRestored access: Access,
        _ token: TokenHash,
        nonce: [UInt8],
        fresh: FreshCredentials,
        now: Timestamp
    ) throws(CatalogError) -> CatalogSession {
        let proposed = fresh.proposed.flatMap { devices[$0] == nil ? $0 : nil }
        let device = NewDevice(
            id: fresh.device,
            name: access.deviceName,
            token: proposed ?? fresh.token,
            nonce: fresh.nonce,
            formerNonce: nonce
        )
        let former = devices[token]
        // It goes on with what was done under the name; what it once was, and is seldom alive, gets a number.
        let formerName = freeDeviceName(access.deviceName, account: access.account)
        devices[token]?.name = formerName
        do throws(CatalogError) {
            try add(device, account: access.account, access.grant, now: now)
        } catch {
            devices[token] = former
            throw error
        }
        // Two now share the former identity's past: a code may be that of either.
        removeInvitations(by: access.device)
        return CatalogSession(
            access: try self.access(device.token),
            isRestored: true,
            hasProposedToken: proposed != nil
        )
    }

    package func devices(for token: TokenHash) throws(CatalogError) -> [DeviceRecord] {
        let access = try access(token)
        let records = devices.values.filter { $0.account == access.account }.map { device in
            DeviceRecord(
                id: device.id,
                name: device.name,
                joined: device.joined,
                seen: device.seen,
                isRevoked: device.isRevoked,
                isCurrent: device.id == access.device
            )
        }
        return records.sorted { left, right in
            if left.joined != right.joined { return left.joined < right.joined }
            if !left.name.hasSameBytes(as: right.name) { return left.name.precedesByBytes(right.name) }
            return left.id < right.id
        }
    }

    package mutating func revoke(_ name: String, by token: TokenHash) throws(CatalogError) -> DeviceID {
        let access = try access(token)
        guard let revoked = device(name, account: access.account), let id = devices[revoked]?.id else {
            throw .noSuchDevice(name)
        }
        // A device may always remove itself; others only if it was let in without limits.
        guard revoked == token || !access.grant.isLimited else { throw .readOnly }
        devices[revoked]?.isRevoked = true
        removeInvitations(by: id)
        return id
    }

    package mutating func revokeSelf(_ token: TokenHash) throws(CatalogError) -> Access {
        let access = try access(token)
        devices[token]?.isRevoked = true
        removeInvitations(by: access.device)
        return access
    }

    /// The token of the account's device of that name, if it is not revoked.
    func device(_ name: String, account: Int64) -> TokenHash? {
        devices.first { $1.account == account && !$1.isRevoked && $1.name.hasSameBytes(as: name) }?.key
    }

    /// The codes that the device has made are wrong from now on.
    private mutating func removeInvitations(by device: DeviceID) {
        invitations = invitations.filter { $0.value.inviter != device }
    }
}
