internal import CatalogModel
internal import CloudProtocol
internal import FoundationEssentials
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import UbiquityModel

/// Joining, sessions, devices and invitations.
extension CloudService {
    private static let nonceBytes = 16

    func addAccountRoutes(_ router: Router<CloudRequestContext>) {
        router.post(.init(CloudRoute.join)) { request, _ in try await join(request) }
        router.post(.init(CloudRoute.session)) { request, _ in try await session(request) }
        router.get(.init(CloudRoute.devices)) { request, _ in try await devices(request) }
        router.post(.init(CloudRoute.revoke)) { request, _ in try await revoke(request) }
        router.post(.init(CloudRoute.signOut)) { request, _ in try await signOut(request) }
        router.post(.init(CloudRoute.invitations)) { request, context in try await invite(request, context) }
    }

    private func join(_ request: Request) async throws -> Response {
        let asked = try await message(WireJoinRequest.self, of: request, upTo: CloudLimits.accountBytes)
        try check(format: asked.format)
        let token = RandomBytes.make(CloudLimits.tokenBytes)
        let device = NewDevice(
            id: .random(),
            name: DeviceName.cleaned(asked.deviceName),
            token: TokenHash(token: token),
            nonce: RandomBytes.make(Self.nonceBytes)
        )
        let access = try await catalog.join(SecretHash(secret: [UInt8](asked.code)), as: device, now: now())
        var answer = WireJoinResponse()
        answer.account = access.accountName
        answer.device = Data(access.device.bytes)
        answer.token = Data(token)
        answer.nonce = Data(device.nonce)
        answer.containers = try await catalog.containers(for: device.token).map { WireContainerInfo($0.info) }
        answer.deviceName = access.deviceName
        logger.info("\(access.deviceName) joined the account \(access.accountName)")
        return try .message(answer)
    }

    private func session(_ request: Request) async throws -> Response {
        let presented = try token(of: request)
        let asked = try await message(WireSessionRequest.self, of: request, upTo: CloudLimits.accountBytes)
        try check(format: asked.format)
        let proposed = [UInt8](asked.proposedToken)
        guard proposed.isEmpty || proposed.count == CloudLimits.tokenBytes else {
            throw RequestFailure(.badRequest, "a proposed token of \(proposed.count) bytes")
        }
        let token = RandomBytes.make(CloudLimits.tokenBytes)
        let fresh = FreshCredentials(
            nonce: RandomBytes.make(Self.nonceBytes),
            device: .random(),
            token: TokenHash(token: token),
            proposed: proposed.isEmpty ? nil : TokenHash(token: proposed)
        )
        let time = now()
        let session = try await catalog.openSession(presented, nonce: [UInt8](asked.nonce), fresh: fresh, now: time)
        var answer = WireSessionResponse()
        answer.nonce = Data(session.keptNonce ?? fresh.nonce)
        answer.restored = session.isRestored
        answer.device = Data(session.access.device.bytes)
        if session.isRestored { answer.token = Data(session.hasProposedToken ? proposed : token) }
        answer.serverClock = time.nanoseconds
        answer.account = session.access.accountName
        answer.deviceName = session.access.deviceName
        answer.manifestDifferences = true
        let valid = session.isRestored ? TokenHash(token: [UInt8](answer.token)) : presented
        answer.containers = try await catalog.containers(for: valid).map { WireContainerInfo($0.info) }
        return try .message(answer)
    }

    private func devices(_ request: Request) async throws -> Response {
        var answer = WireDeviceList()
        answer.devices = try await catalog.devices(for: try token(of: request)).map { device in
            WireDevice(
                DeviceInfo(
                    id: device.id,
                    name: device.name,
                    joined: device.joined,
                    lastSeen: device.seen,
                    isRevoked: device.isRevoked,
                    isCurrent: device.isCurrent
                )
            )
        }
        return try .message(answer)
    }

    private func revoke(_ request: Request) async throws -> Response {
        let token = try token(of: request)
        let asked = try await message(WireRevokeRequest.self, of: request, upTo: CloudLimits.accountBytes)
        let device = try await catalog.revoke(asked.name, by: token, now: now())
        hub.end(device: device)
        logger.info("the device \(asked.name) was revoked")
        return Response(status: .ok)
    }

    /// A device removes itself: the one whose token it is, whatever it is called.
    private func signOut(_ request: Request) async throws -> Response {
        let access = try await catalog.revokeSelf(try token(of: request), now: now())
        hub.end(device: access.device)
        logger.info("\(access.deviceName) signed out")
        return Response(status: .ok)
    }

    private func invite(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let token = try token(of: request)
        let asked = try await message(WireInviteRequest.self, of: request, upTo: CloudLimits.accountBytes)
        // Nobody opens the network who may not even invite.
        _ = try await catalog.access(token)
        let containers = try asked.containers.map { name in
            guard let id = ContainerID(name) else {
                throw RequestFailure(.noSuchContainer, "there is no container \"\(name)\"")
            }
            return id
        }
        let (url, fingerprint) = try await network.invitationAddress(
            address: asked.address,
            opening: asked.openNetwork,
            isLocal: context.isLocal
        )
        let made = try NewInvitation.make(
            grant: Grant(isReadOnly: asked.readOnly, containers: containers.isEmpty ? nil : containers),
            fingerprint: fingerprint,
            now: now()
        )
        try await catalog.addInvitation(made.invitation, by: token)
        var answer = WireInviteResponse()
        answer.url = url
        answer.code = made.code
        answer.expires = made.invitation.expires.nanoseconds
        return try .message(answer)
    }
}
