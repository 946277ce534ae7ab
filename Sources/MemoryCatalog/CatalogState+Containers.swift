package import CatalogModel
package import UbiquityModel

extension CatalogState {
    package func containers(for token: TokenHash) throws(CatalogError) -> [CatalogContainer] {
        let access = try access(token)
        return numbersOfContainers(account: access.account)
            .filter { access.grant.allows(self[container: $0].info.id) }
            .map { described($0, access.grant) }
            .sorted { $0.info.id.text.precedesByBytes($1.info.id.text) }
    }

    package mutating func createContainer(
        _ container: ContainerInfo,
        by token: TokenHash
    ) throws(CatalogError) -> CatalogContainer {
        let access = try access(token)
        guard !access.grant.isLimited else { throw .readOnly }
        guard
            !numbersOfContainers(account: access.account).contains(where: {
                self[container: $0].info.id == container.id
            })
        else { throw .containerExists(container.id) }
        let number = add(ContainerState(account: access.account, info: container))
        return described(number, access.grant)
    }

    package mutating func removeContainer(_ scope: Scope) throws(CatalogError) {
        let (access, number) = try authorize(scope)
        guard !access.grant.isLimited else { throw .readOnly }
        self[container: number].isRemoved = true
    }

    package mutating func declarePackages(
        _ change: PackageDeclaration,
        _ scope: Scope
    ) throws(CatalogError) -> CatalogContainer {
        let (access, number) = try authorizeWriting(scope)
        let packages = self[container: number].info.packages.applying(change)
        guard packages.count <= PackageDeclaration.limit else {
            throw .tooManyExtensions(limit: PackageDeclaration.limit)
        }
        self[container: number].info.packages = packages
        return described(number, access.grant)
    }

    /// The container as a device may use it.
    func described(_ number: Int64, _ grant: Grant) -> CatalogContainer {
        var info = self[container: number].info
        info.isReadOnly = grant.isReadOnly
        return CatalogContainer(number: number, info: info)
    }
}
