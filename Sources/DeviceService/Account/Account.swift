package import CloudClient
package import UbiquityControl
package import UbiquityModel

/// The account that this device is signed in to: `account.json`. It holds secrets.
package struct Account: Codable, Sendable {
    package var format = FormatVersion.configuration
    package var credentials: Credentials
    /// Opaque: equal while this device stays signed in to the account, and says nothing about it [ubiquityIdentityToken].
    package var identity: String
    /// The server is this device's own, started by `up`.
    package var serverIsEmbedded: Bool
    /// As far as the server has told: what can be mounted without it.
    package var containers: [ContainerRecord]

    package init(credentials: Credentials, containers: [ContainerInfo], serverIsEmbedded: Bool) {
        self.credentials = credentials
        self.containers = containers.map { ContainerRecord($0) }
        self.serverIsEmbedded = serverIsEmbedded
        identity = DeviceID.random().description
    }

    /// `nil` when signed out.
    package static func load(_ home: HomeDirectories) throws(ControlError) -> Account? {
        try StateFile.read(Account.self, from: home.accountFile)
    }

    /// - Returns: whether the container declared something else before.
    package mutating func note(_ packages: PackageDeclaration, of container: ContainerInfo) -> Bool {
        for index in containers.indices where containers[index].isOf(container) {
            guard containers[index].packages != packages else { return false }
            containers[index].packages = packages
            return true
        }
        return false
    }

    package func save(_ home: HomeDirectories) throws(ControlError) {
        try home.create()
        try StateFile.write(self, to: home.accountFile, of: home)
    }

    package static func remove(_ home: HomeDirectories) throws(ControlError) {
        try StateFile.remove(home.accountFile)
        try StateFile.remove(home.reserveFile)
    }
}

/// A container as it is written into files.
package struct ContainerRecord: Codable, Sendable, Hashable {
    package var id: String
    /// Hexadecimal.
    package var key: String
    package var layout: String
    package var isCaseInsensitive: Bool
    package var isReadOnly: Bool
    /// Extensions of packages besides the usual ones, and extensions that are none. Absent: none.
    private var packagesAdded: [String]?
    private var packagesRemoved: [String]?

    package init(_ info: ContainerInfo) {
        id = info.id.text
        key = Hexadecimal.encode(info.key)
        layout = info.layout.rawValue
        isCaseInsensitive = info.isCaseInsensitive
        isReadOnly = info.isReadOnly
        packages = info.packages
    }

    package var packages: PackageDeclaration {
        get { PackageDeclaration(added: Set(packagesAdded ?? []), removed: Set(packagesRemoved ?? [])) }
        set {
            packagesAdded = newValue.added.isEmpty ? nil : newValue.added.sorted()
            packagesRemoved = newValue.removed.isEmpty ? nil : newValue.removed.sorted()
        }
    }

    /// Containers of one name may be in several accounts.
    func isOf(_ info: ContainerInfo) -> Bool { id == info.id.text && key == Hexadecimal.encode(info.key) }

    /// `nil` for what no version of ours has written.
    package var info: ContainerInfo? {
        guard let id = ContainerID(id), let key = Hexadecimal.decode(key), key.count == 32,
            let layout = ContainerInfo.Layout(rawValue: layout)
        else { return nil }
        return ContainerInfo(
            id: id,
            key: key,
            layout: layout,
            isCaseInsensitive: isCaseInsensitive,
            isReadOnly: isReadOnly,
            packages: packages
        )
    }
}
