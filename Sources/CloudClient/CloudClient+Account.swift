package import CloudProtocol
internal import NIOHTTP1
package import UbiquityModel

extension CloudClient {
    package func containers() async throws(CloudError) -> [ContainerInfo] {
        usable(try await send(CloudRequest(path: CloudRoute.containers), WireContainerList.self).containers)
    }

    package func createContainer(
        _ container: ContainerID,
        layout: ContainerInfo.Layout,
        isCaseInsensitive: Bool
    ) async throws(CloudError) -> ContainerInfo {
        var message = WireCreateContainerRequest()
        message.id = container.text
        message.layout = layout.rawValue
        message.caseInsensitive = isCaseInsensitive
        var request = try CloudRequest.post(CloudRoute.containers, message)
        // The second time it would exist already.
        request.isRepeatable = false
        let answer = try await send(request, WireContainerInfo.self)
        return try decoding { () throws(WireError) in try ContainerInfo(wire: answer) }
    }

    package func removeContainer(_ container: ContainerID) async throws(CloudError) {
        try await send(CloudRequest(method: .DELETE, path: CloudRoute.path(container), isRepeatable: false))
    }

    package func declarePackages(
        _ container: ContainerID,
        _ change: PackageDeclaration
    ) async throws(CloudError) -> ContainerInfo {
        let request = try CloudRequest.post(CloudRoute.path(container, .packages), WirePackageDeclaration(change))
        let answer = try await send(request, WireContainerInfo.self)
        return try decoding { () throws(WireError) in try ContainerInfo(wire: answer) }
    }

    package func devices() async throws(CloudError) -> [DeviceInfo] {
        let answer = try await send(CloudRequest(path: CloudRoute.devices), WireDeviceList.self)
        return try decoding { () throws(WireError) in
            try answer.devices.map { (wire) throws(WireError) in try DeviceInfo(wire: wire) }
        }
    }

    package func revoke(deviceNamed name: String) async throws(CloudError) {
        var message = WireRevokeRequest()
        message.name = name
        try await send(try .post(CloudRoute.revoke, message))
    }

    package func signOut() async throws(CloudError) {
        do throws(CloudError) { try await send(CloudRequest(method: .POST, path: CloudRoute.signOut)) } catch {
            // A request whose answer was lost, or somebody else was faster.
            guard error == .revoked else { throw error }
        }
    }

    package func invite(_ request: InvitationRequest) async throws(CloudError) -> Invitation {
        var message = WireInviteRequest()
        message.containers = request.containers.map(\.text)
        message.readOnly = request.isReadOnly
        message.openNetwork = request.opensNetwork
        message.address = request.address
        let answer = try await send(try .post(CloudRoute.invitations, message), WireInviteResponse.self)
        return Invitation(url: answer.url, code: answer.code, expires: Timestamp(nanoseconds: answer.expires))
    }
}
