package import CatalogModel
internal import UbiquityModel

/// A whole catalogue as a value: what a server holds, without a disk, a clock or randomness.
///
/// Its methods mean what those of `Catalog` do and give the same answers. One that throws has changed nothing. A copy is the server as it
/// was at that moment: to assign it back is to restore a server from a backup.
package struct CatalogState: Sendable {
    /// By number, beginning with 1. Numbers are never used again.
    private(set) var accounts: [AccountState] = []
    /// By number, beginning with 1, removed ones included.
    private(set) var containers: [ContainerState] = []
    /// Revoked ones included.
    var devices: [TokenHash: DeviceState] = [:]
    var invitations: [SecretHash: InvitationState] = [:]
    private var settings: [String: String] = [:]

    package init() {}

    package func setting(_ name: String) -> String? { settings[name] }

    package mutating func set(_ name: String, to value: String) { settings[name] = value }

    // MARK: Numbers

    subscript(account number: Int64) -> AccountState {
        get { accounts[Int(number) - 1] }
        set { accounts[Int(number) - 1] = newValue }
    }

    subscript(container number: Int64) -> ContainerState {
        // In place: a copy of a container for each commit would take long.
        _read { yield containers[Int(number) - 1] }
        _modify { yield &containers[Int(number) - 1] }
    }

    mutating func add(_ account: AccountState) { accounts.append(account) }

    /// Returns its number.
    mutating func add(_ container: ContainerState) -> Int64 {
        containers.append(container)
        return Int64(containers.count)
    }

    func numbersOfContainers(account: Int64) -> [Int64] {
        containers.indices.filter { containers[$0].account == account && !containers[$0].isRemoved }
            .map { Int64($0) + 1 }
    }

    // MARK: Who may do what

    package func access(_ token: TokenHash) throws(CatalogError) -> Access {
        guard let device = devices[token] else { throw .unauthorized }
        let account = self[account: device.account]
        guard !device.isRevoked, !account.isRemoved else { throw .revoked }
        return Access(
            device: device.id,
            deviceName: device.name,
            account: device.account,
            accountName: account.name,
            grant: device.grant
        )
    }

    /// The container's number, if the device may use it. One that it may not even know of is as one that does not exist.
    func authorize(_ scope: Scope) throws(CatalogError) -> (access: Access, container: Int64) {
        let access = try access(scope.token)
        guard access.grant.allows(scope.container),
            let index = containers.firstIndex(where: {
                $0.account == access.account && !$0.isRemoved && $0.info.id == scope.container
            })
        else { throw .noSuchContainer(scope.container) }
        return (access, Int64(index) + 1)
    }

    /// Throws unless the device may write into the container.
    func authorizeWriting(_ scope: Scope) throws(CatalogError) -> (access: Access, container: Int64) {
        let authorized = try authorize(scope)
        guard !authorized.access.grant.isReadOnly else { throw .readOnly }
        return authorized
    }

    /// Bytes that the account may still store; `nil` without a quota.
    func room(account: Int64) -> Int64? {
        self[account: account].quota.map { $0 - used(account: account) }
    }

    /// Bytes of different chunks in the account's containers.
    func used(account: Int64) -> Int64 {
        numbersOfContainers(account: account).reduce(0) { $0 + self[container: $1].bytes }
    }
}

struct AccountState: Sendable {
    var name: String
    /// Bytes; `nil` without a limit.
    var quota: Int64?
    var isRemoved = false
}

struct DeviceState: Sendable {
    var id: DeviceID
    var account: Int64
    var name: String
    var grant: Grant
    var nonce: [UInt8]
    /// Good too until the device has committed something: the answer that carried `nonce` may have been lost.
    var formerNonce: [UInt8]?
    var joined: Timestamp
    var seen: Timestamp
    var isRevoked = false
}

struct InvitationState: Sendable {
    var account: Int64
    /// The device that made it; `nil`: the server's administrator.
    var inviter: DeviceID?
    var grant: Grant
    var expires: Timestamp
    var isUsed = false
}

extension String {
    /// Names are told apart by their bytes, not by what Unicode holds for the same.
    func hasSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }

    func precedesByBytes(_ other: String) -> Bool { utf8.lexicographicallyPrecedes(other.utf8) }
}
