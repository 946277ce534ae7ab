package import CatalogModel
package import UbiquityModel

/// Accounts and the invitations to them.
extension CatalogState {
    package func accountInfos() -> [AccountInfo] {
        let infos = accounts.indices.filter { !accounts[$0].isRemoved }.map { index in
            let number = Int64(index) + 1
            return AccountInfo(
                name: accounts[index].name,
                quota: accounts[index].quota,
                used: used(account: number),
                devices: devices.values.count { $0.account == number && !$0.isRevoked },
                containers: numbersOfContainers(account: number).count
            )
        }
        return infos.sorted { $0.name.precedesByBytes($1.name) }
    }

    package mutating func addAccount(_ name: String, quota: Int64?) throws(CatalogError) {
        guard accountNumber(name) == nil else { throw .accountExists(name) }
        add(AccountState(name: name, quota: quota))
    }

    package mutating func removeAccount(_ name: String) throws(CatalogError) {
        guard let number = accountNumber(name) else { throw .noSuchAccount(name) }
        self[account: number].isRemoved = true
        for token in devices.keys where devices[token]?.account == number { devices[token]?.isRevoked = true }
        for container in numbersOfContainers(account: number) { self[container: container].isRemoved = true }
        invitations = invitations.filter { $0.value.account != number }
    }

    package mutating func addInvitation(_ invitation: Invitation, account: String) throws(CatalogError) {
        guard let number = accountNumber(account) else { throw .noSuchAccount(account) }
        try add(invitation, account: number, inviter: nil)
    }

    package mutating func addInvitation(_ invitation: Invitation, by token: TokenHash) throws(CatalogError) {
        let access = try access(token)
        var invitation = invitation
        if access.grant.isReadOnly { invitation.grant.isReadOnly = true }
        for container in invitation.grant.containers ?? [] {
            _ = try authorize(Scope(token: token, container: container))
        }
        if invitation.grant.containers == nil { invitation.grant.containers = access.grant.containers }
        try add(invitation, account: access.account, inviter: access.device)
    }

    package mutating func join(
        _ secret: SecretHash,
        as device: NewDevice,
        now: Timestamp
    ) throws(CatalogError) -> Access {
        guard let invitation = invitations[secret] else { throw .wrongCode }
        guard !invitation.isUsed else { throw .usedCode }
        guard now < invitation.expires else { throw .expiredCode }
        try add(device, account: invitation.account, invitation.grant, now: now)
        invitations[secret]?.isUsed = true
        return try access(device.token)
    }

    // MARK: Helpers

    private func accountNumber(_ name: String) -> Int64? {
        accounts.firstIndex { !$0.isRemoved && $0.name.hasSameBytes(as: name) }.map { Int64($0) + 1 }
    }

    private mutating func add(
        _ invitation: Invitation,
        account: Int64,
        inviter: DeviceID?
    ) throws(CatalogError) {
        guard invitations[invitation.secret] == nil else { throw .failed("the invitation's secret is taken") }
        invitations[invitation.secret] = InvitationState(
            account: account,
            inviter: inviter,
            grant: invitation.grant,
            expires: invitation.expires
        )
    }

    /// Adds a device under its name, or under that name with a number if the account has such a device.
    mutating func add(
        _ device: NewDevice,
        account: Int64,
        _ grant: Grant,
        now: Timestamp
    ) throws(CatalogError) {
        guard devices[device.token] == nil, !devices.values.contains(where: { $0.id == device.id }) else {
            throw .failed("the device's id or token is taken")
        }
        devices[device.token] = DeviceState(
            id: device.id,
            account: account,
            name: freeDeviceName(device.name, account: account),
            grant: grant,
            nonce: device.nonce,
            formerNonce: device.formerNonce,
            joined: now,
            seen: now
        )
    }
    /// The name, or that name with a number if the account has such a device.
    func freeDeviceName(_ wanted: String, account: Int64) -> String {
        var name = wanted
        var number = 1
        while device(name, account: account) != nil {
            number += 1
            name = "\(wanted) \(number)"
        }
        return name
    }
}
