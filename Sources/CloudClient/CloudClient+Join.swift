internal import CloudProtocol
internal import FoundationEssentials
package import Logging
package import UbiquityModel

extension CloudClient {
    /// Brings this device into an account.
    /// - Parameter code: as it was typed. A code that is none is `.rejected` with `FailureCode.wrongCode` before anybody is asked.
    /// - Parameter deviceName: what the device would like to be called; the credentials say what the account calls it.
    /// - Returns: what the device keeps from now on, and the containers that it may use.
    package static func join(
        url: String,
        code: String,
        deviceName: String,
        logger: Logger
    ) async throws(CloudError) -> (credentials: Credentials, containers: [ContainerInfo]) {
        let endpoint = try Endpoint(parsing: url)
        let invitation: InvitationCode
        do throws(InvitationCodeError) { invitation = try InvitationCode(parsing: code) } catch {
            throw .rejected(code: FailureCode.wrongCode.rawValue, message: error.description)
        }
        let certificate = try await certificate(for: invitation, at: endpoint)
        let transport = try Transport(endpoint: endpoint, certificate: certificate, logger: logger)
        let answer: Result<[UInt8], CloudError>
        do throws(CloudError) {
            answer = .success(try await transport.send(try request(invitation, deviceName: deviceName), token: nil))
        } catch { answer = .failure(error) }
        await transport.shutdown()
        let body = try answer.get()
        return try decoding { () throws(WireError) in
            let response = try WireJoinResponse(body: body)
            let credentials = try credentials(
                response,
                endpoint: endpoint,
                certificate: certificate,
                fingerprint: invitation.fingerprint
            )
            let containers = try response.containers.map { (wire) throws(WireError) in try ContainerInfo(wire: wire) }
            return (credentials, containers)
        }
    }

    private static func certificate(
        for invitation: InvitationCode,
        at endpoint: Endpoint
    ) async throws(CloudError) -> String? {
        guard let fingerprint = invitation.fingerprint else { return nil }
        guard endpoint.usesTLS else {
            throw .wrongServer("the invitation is for a server with TLS: its address begins with https://")
        }
        return try await PinnedCertificate.fetch(from: endpoint, fingerprint: fingerprint)
    }

    private static func request(_ invitation: InvitationCode, deviceName: String) throws(CloudError) -> CloudRequest {
        var message = WireJoinRequest()
        message.format = FormatVersion.cloudProtocol
        message.code = Data(invitation.secret)
        message.deviceName = deviceName
        var request = try CloudRequest.post(CloudRoute.join, message)
        // A code can be used once.
        request.isRepeatable = false
        return request
    }

    private static func credentials(
        _ response: WireJoinResponse,
        endpoint: Endpoint,
        certificate: String?,
        fingerprint: [UInt8]?
    ) throws(WireError) -> Credentials {
        guard let device = DeviceID(bytes: response.device) else {
            throw .wrongLength("the device's id", bytes: response.device.count)
        }
        guard !response.token.isEmpty else { throw .missing("the token") }
        guard !response.nonce.isEmpty else { throw .missing("the nonce") }
        guard !response.deviceName.isEmpty else { throw .missing("the device's name") }
        return Credentials(
            url: endpoint.url,
            certificate: certificate,
            fingerprint: fingerprint,
            account: response.account,
            device: device,
            deviceName: response.deviceName,
            token: [UInt8](response.token),
            nonce: [UInt8](response.nonce)
        )
    }
}
