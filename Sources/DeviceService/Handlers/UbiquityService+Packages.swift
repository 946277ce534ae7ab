internal import CloudClient
internal import SyncEngine
package import UbiquityControl
package import UbiquityModel

extension UbiquityService {
    /// A change counts here when this returns, and on other devices when their feeds tell of it.
    func packages(_ request: PackagesRequest) async throws(ControlError) -> PackagesRequest.Answer {
        let name = request.container
        guard !isSignedOut else { throw ControlError(name, EngineError.signedOut) }
        guard let id = ContainerID(name) else { throw ControlError(.usage, name, "it is no container's name") }
        guard !request.added.isEmpty || !request.removed.isEmpty else { return try await knownPackages(of: id) }
        let change = try Self.change(request)
        guard !table.isOffline else { throw ControlError.offline(name) }
        let info: ContainerInfo
        do throws(CloudError) { info = try await cloud.declarePackages(id, change) } catch {
            throw ControlError(name, error)
        }
        await session.remember(info.packages, of: info)
        mounted[name]?.engine.declare(change)
        return PackagesRequest.Answer(info.packages)
    }

    /// What counts for what is mounted; of the others the server tells.
    private func knownPackages(of id: ContainerID) async throws(ControlError) -> PackagesRequest.Answer {
        if let present = mounted[id.text] { return PackagesRequest.Answer(present.engine.packages) }
        guard let info = try await listContainers().first(where: { $0.id == id }) else {
            throw ControlError.noSuchContainer(id)
        }
        return PackagesRequest.Answer(info.packages)
    }

    private static func change(_ request: PackagesRequest) throws(ControlError) -> PackageDeclaration {
        func checked(_ extensions: [String]) throws(ControlError) -> Set<String> {
            var result: Set<String> = []
            for text in extensions.prefix(PackageDeclaration.limit + 1) {
                guard let name = PackageDeclaration.checked(text) else {
                    throw ControlError(.usage, "packages", "\"\(text)\" is no extension of a name")
                }
                result.insert(name)
            }
            return result
        }
        let change = PackageDeclaration(added: try checked(request.added), removed: try checked(request.removed))
        guard change.count <= PackageDeclaration.limit else {
            throw ControlError(.usage, "packages", "more than \(PackageDeclaration.limit) extensions at once")
        }
        return change
    }
}

extension ControlError {
    package static func noSuchContainer(_ id: ContainerID) -> ControlError {
        ControlError(
            id.text,
            "this device may use no such container",
            remedy: "`ubiquity container list` shows which there are"
        )
    }
}

extension PackagesRequest.Answer {
    package init(_ declaration: PackageDeclaration) {
        self.init(added: declaration.added.sorted(), removed: declaration.removed.sorted())
    }

    package var declaration: PackageDeclaration { PackageDeclaration(added: Set(added), removed: Set(removed)) }
}
