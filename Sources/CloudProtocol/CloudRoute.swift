package import UbiquityModel

/// The server's paths. The server registers the templates, the client asks for the paths: both come from here.
package enum CloudRoute {
    package static let join = "/v1/join"
    package static let session = "/v1/session"
    package static let containers = "/v1/containers"
    package static let devices = "/v1/devices"
    package static let revoke = "/v1/devices/revoke"
    package static let signOut = "/v1/devices/sign-out"
    package static let invitations = "/v1/invitations"
    package static let health = "/v1/health"

    /// What can be asked of one container, by the last component of the path.
    package enum Verb: String, Sendable, CaseIterable {
        case changes, children, feed, commit, have, upload, fetch, manifests, confirm, versions, deleted, packages
    }

    /// The name of the path's variable component in the templates.
    package static let containerParameter = "container"

    /// `/v1/containers/:container`, as the server's router writes it.
    package static let containerTemplate = "/v1/containers/:container"

    /// `/v1/containers/:container/VERB`.
    package static func template(_ verb: Verb) -> String { "\(containerTemplate)/\(verb.rawValue)" }

    package static func path(_ container: ContainerID) -> String { "\(containers)/\(container.text)" }

    package static func path(_ container: ContainerID, _ verb: Verb) -> String { "\(path(container))/\(verb.rawValue)" }

    /// The query of `changes` and `feed`, and of `deleted`.
    package enum Query {
        package static let counter = "counter"
        package static let hash = "hash"
        package static let limit = "limit"
        /// With `counter`: the time and the position of the last item that was told of.
        package static let time = "time"
    }
}

/// Header fields and their values.
package enum CloudHeader {
    package static let authorization = "authorization"
    package static let contentType = "content-type"
    /// The body is one message, or a sequence of length-prefixed ones.
    package static let protobuf = "application/protobuf"

    /// `Bearer HEX-TOKEN`.
    package static func bearer(_ token: [UInt8]) -> String { bearerPrefix + Hexadecimal.encode(token) }

    /// The token of an `authorization` field; `nil` if there is none in it.
    package static func token(authorization: String) -> [UInt8]? {
        guard authorization.hasPrefix(bearerPrefix) else { return nil }
        return Hexadecimal.decode(String(authorization.dropFirst(bearerPrefix.count)))
    }

    private static let bearerPrefix = "Bearer "
}

/// Limits and times that both sides must agree on.
package enum CloudLimits {
    /// The longest body of a request that is one message: a commit with the chunks of small contents in it.
    package static let messageBytes = 32 * 1024 * 1024
    /// The longest body of a request that is a list of ids: 4096 pairs of them are some 160 KiB.
    package static let listBytes = 512 * 1024
    /// The longest body of a request that concerns the account. Strangers may send some of them.
    package static let accountBytes = 64 * 1024
    /// Of the secret that lets a device in.
    package static let tokenBytes = 32
    /// Manifests in one answer, together. Longer than any single one can be, since that came in one commit.
    package static let manifestBytes = 64 * 1024 * 1024
    /// Chunks asked for in one `have`, `fetch`, or contents in one `manifests`.
    package static let idsPerRequest = 4096
    /// Operations in one commit.
    package static let operationsPerCommit = 4096
    /// Chunks in one commit: small contents travel in it, and a chunk that is not the last of its content has 32 KiB.
    package static let chunksPerCommit = 16_384
    /// Items in one page of changes.
    package static let itemsPerPage = 4096
    /// No page has more, whatever it is of: announced items come along beside those that are counted.
    package static let itemsPerMessage = 64 * 1024
    /// Nobody looks through more deleted items than this; the newest are told.
    package static let deletedItems = 10_000
    /// The server sends an empty page on a feed that has nothing to say this often.
    package static let signOfLife: Duration = .seconds(20)
    /// A feed without a sign of life for this long is lost.
    package static let feedLost: Duration = .seconds(60)
}
