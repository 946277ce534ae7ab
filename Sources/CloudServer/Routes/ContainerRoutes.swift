internal import CatalogModel
internal import CloudProtocol
internal import Hummingbird
internal import HummingbirdCore
internal import UbiquityModel

extension CloudService {
    func addContainerRoutes(_ router: Router<CloudRequestContext>) {
        router.get(.init(CloudRoute.containers)) { request, _ in
            var answer = WireContainerList()
            answer.containers = try await catalog.containers(for: try token(of: request)).map {
                WireContainerInfo($0.info)
            }
            return try Response.message(answer)
        }
        router.post(.init(CloudRoute.containers)) { request, _ in try await createContainer(request) }
        router.delete(.init(CloudRoute.containerTemplate)) { request, context in
            try await removeContainer(request, context)
        }
        router.post(.init(CloudRoute.template(.packages))) { request, context in
            try await declarePackages(request, context)
        }
    }

    private func createContainer(_ request: Request) async throws -> Response {
        let token = try token(of: request)
        let asked = try await message(WireCreateContainerRequest.self, of: request, upTo: CloudLimits.accountBytes)
        guard let id = ContainerID(asked.id) else {
            throw RequestFailure(.badRequest, "\"\(asked.id)\" is no container's identifier")
        }
        guard let layout = ContainerInfo.Layout(rawValue: asked.layout) else {
            throw RequestFailure(.badRequest, "\"\(asked.layout)\" is no layout: there are drive and app")
        }
        let info = ContainerInfo(
            id: id,
            key: RandomBytes.make(ContainerInfo.keyBytes),
            layout: layout,
            isCaseInsensitive: asked.caseInsensitive,
            isReadOnly: false
        )
        let container = try await catalog.createContainer(info, by: token, now: now())
        return try .message(WireContainerInfo(container.info))
    }

    private func declarePackages(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        let asked = try await message(WirePackageDeclaration.self, of: request, upTo: CloudLimits.listBytes)
        let container = try await catalog.declarePackages(try PackageDeclaration(wire: asked), scope)
        // Nothing new is in the log, but the feeds look.
        hub.announce(container: container.number)
        return try .message(WireContainerInfo(container.info))
    }

    private func removeContainer(_ request: Request, _ context: CloudRequestContext) async throws -> Response {
        let scope = try scope(of: request, context)
        let containers = try await catalog.containers(for: scope.token)
        try await catalog.removeContainer(scope, now: now())
        if let container = containers.first(where: { $0.info.id == scope.container }) {
            hub.containerRemoved(container.number)
        }
        return Response(status: .ok)
    }
}
