internal import CatalogModel
internal import ChunkStore
internal import CloudProtocol
internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
internal import Logging
internal import NIOCore
internal import NIOHTTP1

/// A refusal with its code and its reason in words.
struct RequestFailure: Error {
    let code: FailureCode
    let message: String

    init(_ code: FailureCode, _ message: String) {
        self.code = code
        self.message = message
    }
}

/// Turns every error of a route into a status and a `Failure` body. One place decides which error is which code.
struct FailureMiddleware: RouterMiddleware {
    typealias Context = CloudRequestContext

    func handle(
        _ request: Request,
        context: CloudRequestContext,
        next: (Request, CloudRequestContext) async throws -> Response
    ) async throws -> Response {
        do { return try await next(request, context) } catch {
            let failure = Self.failure(error)
            if failure.code == .internalError || failure.code == .noSpace {
                context.logger.error("\(request.method) \(request.uri.path): \(error)")
            } else {
                context.logger.debug(
                    "\(request.method) \(request.uri.path): \(failure.code.rawValue): \(failure.message)"
                )
            }
            let status = HTTPResponse.Status(code: failure.code.status)
            // A code and a few words can always be encoded; if not, the status says enough.
            guard var response = try? Response.message(WireFailure(failure.code, failure.message)) else {
                return Response(status: status)
            }
            response.status = status
            return response
        }
    }

    private static func failure(_ error: any Error) -> RequestFailure {
        switch error {
        case let error as RequestFailure: error
        case let error as CatalogError: RequestFailure(code(of: error), error.description)
        case let error as ChunkStoreError: RequestFailure(code(of: error), error.description)
        case let error as ServerError: RequestFailure(.internalError, error.description)
        case let error as WireError where error.isOwn: RequestFailure(.internalError, error.description)
        case let error as WireError: RequestFailure(code(of: error), error.description)
        case is NIOTooManyBytesError: RequestFailure(.tooLarge, "the request is longer than the server takes")
        case is HTTPParserError: RequestFailure(.badRequest, "the request was broken off, or is none")
        case let error as HTTPError where error.status.code == 404:
            RequestFailure(.notFound, "the server has no such address")
        case let error as any HTTPResponseError: RequestFailure(.badRequest, "\(error)")
        default: RequestFailure(.internalError, "\(error)")
        }
    }

    private static func code(of error: WireError) -> FailureCode {
        if case .tooMany = error { return .tooLarge }
        return .badRequest
    }

    private static func code(of error: CatalogError) -> FailureCode {
        switch error {
        case .unauthorized: .unauthorized
        case .revoked: .revoked
        case .readOnly: .readOnly
        case .noSuchContainer: .noSuchContainer
        case .containerExists: .containerExists
        case .noSuchAccount, .noSuchDevice, .noSuchItem: .notFound
        case .accountExists: .badRequest
        case .wrongCode: .wrongCode
        case .usedCode: .usedCode
        case .expiredCode: .expiredCode
        case .quotaExceeded: .quota
        case .tooMuch, .tooManyExtensions: .tooLarge
        case .noSpace: .noSpace
        case .tooNew, .cancelled, .failed: .internalError
        }
    }

    private static func code(of error: ChunkStoreError) -> FailureCode {
        switch error {
        case .noSpace: .noSpace
        case .missing: .notFound
        case .inUse, .tooNew, .failed, .closed: .internalError
        }
    }
}
