internal import CatalogModel
internal import GRDB
internal import UbiquityModel

/// Who may do what: looked up in the transaction that does it.
extension Database {
    func access(_ token: TokenHash) throws -> Access {
        let sql = """
            SELECT devices.id, devices.name, devices.account, accounts.name, devices.read_only, devices.containers,
                devices.revoked IS NOT NULL OR accounts.removed IS NOT NULL
            FROM devices JOIN accounts ON accounts.number = devices.account WHERE devices.token = ?
            """
        guard let row = try first(sql, [token.blob]) else { throw CatalogError.unauthorized }
        guard try row.value(6) == false else { throw CatalogError.revoked }
        return Access(
            device: try row.identifier(0),
            deviceName: try row.value(1),
            account: try row.value(2),
            accountName: try row.value(3),
            grant: Grant(isReadOnly: try row.value(4), containers: GrantedContainers.decode(try row.optional(5)))
        )
    }

    /// The container, if the device may use it. One that it may not even know of is as one that does not exist.
    func authorize(_ scope: Scope) throws -> (access: Access, container: CatalogContainer) {
        let access = try access(scope.token)
        guard access.grant.allows(scope.container) else { throw CatalogError.noSuchContainer(scope.container) }
        let sql = "SELECT \(Self.containerColumns) FROM containers WHERE account = ? AND name = ? AND removed IS NULL"
        guard let row = try first(sql, [access.account, scope.container.text]) else {
            throw CatalogError.noSuchContainer(scope.container)
        }
        return (access, try container(row, access.grant))
    }

    /// Throws unless the device may write into the container.
    func authorizeWriting(_ scope: Scope) throws -> (access: Access, container: CatalogContainer) {
        let authorized = try authorize(scope)
        guard !authorized.access.grant.isReadOnly else { throw CatalogError.readOnly }
        return authorized
    }

    static let containerColumns =
        "number, name, key, layout, case_insensitive, packages_added, packages_removed"

    func container(_ row: Row, _ grant: Grant) throws -> CatalogContainer {
        guard let id = ContainerID(try row.value(1)) else { throw row.damaged(1) }
        guard let layout = ContainerInfo.Layout(rawValue: try row.value(3)) else { throw row.damaged(3) }
        let info = ContainerInfo(
            id: id,
            key: try row.bytes(2),
            layout: layout,
            isCaseInsensitive: try row.value(4),
            isReadOnly: grant.isReadOnly,
            packages: PackageDeclaration(
                added: Extensions.decode(try row.optional(5)),
                removed: Extensions.decode(try row.optional(6))
            )
        )
        return CatalogContainer(number: try row.value(0), info: info)
    }

    /// Bytes that the account may still store; `nil` without a quota.
    func room(account: Int64) throws -> Int64? {
        let sql = """
            SELECT quota - (SELECT COALESCE(SUM(bytes), 0) FROM containers WHERE account = ? AND removed IS NULL)
            FROM accounts WHERE number = ?
            """
        return try first(sql, [account, account])?.optional(0)
    }
}

/// Extensions of packages as text: one a line (none holds a newline).
enum Extensions {
    static func encode(_ extensions: Set<String>) -> String? {
        extensions.isEmpty ? nil : extensions.sorted().joined(separator: "\n")
    }

    static func decode(_ text: String?) -> Set<String> {
        text.map { Set($0.split(separator: "\n").map(String.init)) } ?? []
    }
}

/// The containers of a grant as text: their names, one a line (no name holds a newline).
enum GrantedContainers {
    static func encode(_ containers: [ContainerID]?) -> String? {
        containers.map { $0.map(\.text).joined(separator: "\n") }
    }

    static func decode(_ text: String?) -> [ContainerID]? {
        text.map { $0.split(separator: "\n").compactMap { ContainerID(String($0)) } }
    }
}
