internal import CloudClient
internal import CloudProtocol
internal import UbiquityControl
internal import UbiquityModel

extension UbiquityService {
    /// The container that a request means: from what the server has told before, else by asking it; made if that is wanted.
    func container(_ request: MountRequest) async throws(ControlError) -> ContainerInfo {
        let home = home
        let account = try await blocking { () throws(ControlError) in try Account.load(home) }
        let known = account?.containers.compactMap(\.info) ?? []
        if let found = Self.choose(request.container, from: known, isEmbedded: serverIsEmbedded) { return found }
        let available = try await listContainers()
        if let found = Self.choose(request.container, from: available, isEmbedded: serverIsEmbedded) { return found }
        let wanted = request.container ?? ContainerID.documents.text
        guard let id = ContainerID(wanted) else {
            throw ControlError(.usage, wanted, "a container's name has letters, digits, \".\", \"_\" and \"-\" only")
        }
        guard request.createsContainer, request.container != nil || available.isEmpty || serverIsEmbedded else {
            let names = available.map(\.id.text).sorted().joined(separator: ", ")
            throw ControlError(
                wanted,
                names.isEmpty
                    ? "the account has no such container" : "this device may use no such container, only: \(names)",
                remedy: names.isEmpty ? "`ubiquity container create \(wanted)`" : "`ubiquity mount CONTAINER DIR`"
            )
        }
        let created: ContainerInfo
        do throws(CloudError) {
            created = try await cloud.createContainer(id, layout: .drive, isCaseInsensitive: false)
        } catch .rejected(let code, _) where code == FailureCode.containerExists.rawValue {
            // Another device was faster.
            guard let found = try await listContainers().first(where: { $0.id == id }) else {
                throw ControlError(wanted, "it exists, but not for this device")
            }
            return found
        } catch {
            throw ControlError(wanted, error)
        }
        _ = try await listContainers()
        return created
    }

    /// By name; without one `Documents`, or on another's server the only one.
    private static func choose(_ name: String?, from containers: [ContainerInfo], isEmbedded: Bool) -> ContainerInfo? {
        if let name { return containers.first { $0.id.text == name } }
        if let found = containers.first(where: { $0.id == .documents }) { return found }
        return containers.count == 1 && !isEmbedded ? containers[0] : nil
    }

    func listContainers() async throws(ControlError) -> [ContainerInfo] {
        do throws(CloudError) { return try await session.listContainers() } catch {
            throw ControlError("server", error)
        }
    }
}
