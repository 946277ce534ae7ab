package import Chunking
package import CloudProtocol
package import UbiquityModel

/// Everything that a device asks of the cloud. `CloudClient` is the real one, tests have others.
///
/// Nothing here tries again: that is the engine's business. All requests may be repeated after any failure: commits are
/// recognised by their operation ids, chunks and contents by their names.
package protocol Cloud: Sendable {
    /// Renews the device's nonce. The answer's nonce must be stored before anything is sent.
    func session(nonce: [UInt8], clock: Timestamp) async throws(CloudError) -> CloudSession

    /// A page of what changed after a position, `nil` for all from the beginning.
    func changes(_ container: ContainerID, since: LogPosition?, limit: Int) async throws(CloudError) -> ChangesPage

    /// What lies in some folders, one after the other, as far as an answer reaches.
    /// - Parameter after: where to begin in the first one.
    func children(
        _ container: ContainerID,
        of folders: [ItemID],
        after: Name?
    ) async throws(CloudError) -> ChildrenPage

    /// Pages from a held connection: first what changed since the position, then each change as it happens.
    ///
    /// The first page comes at once, even when it is empty. Errors are `CloudError`. It ends when its task is cancelled. The
    /// next page is read only when it is asked for.
    func feed(_ container: ContainerID, since: LogPosition?) -> AsyncThrowingStream<ChangesPage, any Error>

    /// Commits operations in order, each by itself, with the chunks of small contents.
    /// - Parameters:
    ///   - clock: this device's clock now: the server corrects edit times by the difference to its own.
    ///   - bases: manifests that edits follow: what is new is sent as the difference to them, if the cloud has them too.
    ///   - discardsFormer: what the operations replace is kept as no saved version.
    func commit(
        _ container: ContainerID,
        operations: [ItemOperation],
        frames: [ChunkFrame],
        clock: Timestamp,
        bases: [ItemID: KnownManifest],
        discardsFormer: Bool
    ) async throws(CloudError) -> CommitAnswer

    /// Which of these chunks the cloud lacks.
    func missing(_ container: ContainerID, chunks: [ChunkID]) async throws(CloudError) -> [ChunkID]

    func upload(_ container: ContainerID, frames: [ChunkFrame]) async throws(CloudError)

    /// Streams chunks in the order asked for. The content of a frame is not verified here.
    /// - Parameters:
    ///   - examine: one of them came damaged before: the server looks at its own disk, and tells its operator.
    ///   - whenReady: calls its argument once, on any thread and perhaps at once, when there is room for more. Not much more is read
    ///     from the connection before.
    ///   - receive: takes a frame over, on a thread that must not block. If it throws, the fetch ends with `.cancelled` (or with what it
    ///     threw, if that is a `CloudError`): the caller remembers its own reason.
    func fetch(
        _ container: ContainerID,
        chunks: [ChunkID],
        examine: Bool,
        whenReady: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        receive: @escaping @Sendable (ChunkFrame) throws -> Void
    ) async throws(CloudError)

    /// The manifests of these contents; those that the cloud does not know are left out.
    /// - Parameter base: one that is known here: what is much like it comes as the difference.
    func manifests(
        _ container: ContainerID,
        contents: [ContentID],
        base: KnownManifest?
    ) async throws(CloudError) -> [ContentID: Manifest]

    /// Whether each revision is whole in the cloud, in order: asked before eviction.
    func confirm(
        _ container: ContainerID,
        revisions: [(item: ItemID, revision: RevisionID)]
    ) async throws(CloudError) -> [Bool]

    /// All versions of an item: the current one, then conflicts, then saved ones, newest first.
    func versions(_ container: ContainerID, item: ItemID) async throws(CloudError) -> [ItemVersion]

    /// What can be brought back.
    func deleted(_ container: ContainerID) async throws(CloudError) -> [DeletedItem]

    func containers() async throws(CloudError) -> [ContainerInfo]

    func createContainer(
        _ container: ContainerID,
        layout: ContainerInfo.Layout,
        isCaseInsensitive: Bool
    ) async throws(CloudError) -> ContainerInfo

    func removeContainer(_ container: ContainerID) async throws(CloudError)

    /// Which folders of a container are packages by their names changes by that, for all devices.
    func declarePackages(
        _ container: ContainerID,
        _ change: PackageDeclaration
    ) async throws(CloudError) -> ContainerInfo

    func devices() async throws(CloudError) -> [DeviceInfo]

    /// Removes a device from the account: its token is refused from then on.
    func revoke(deviceNamed name: String) async throws(CloudError)

    /// Removes this device, the one whose token this client has, from the account. Also fine if that has happened already.
    func signOut() async throws(CloudError)

    func invite(_ request: InvitationRequest) async throws(CloudError) -> Invitation
}

/// A manifest that is known here, and of which content it is.
package struct KnownManifest: Hashable, Sendable {
    package var content: ContentID
    package var manifest: Manifest

    package init(content: ContentID, manifest: Manifest) {
        self.content = content
        self.manifest = manifest
    }
}

/// The answer to the first request of every connection.
package struct CloudSession: Hashable, Sendable {
    /// To be presented the next time.
    package var nonce: [UInt8]
    /// The nonce presented was an old one: this device was restored or cloned, is another device from now on, and compares
    /// everything before it sends.
    package var isRestored: Bool
    package var device: DeviceID
    package var serverClock: Timestamp
    package var containers: [ContainerInfo]
    package var account: String
    package var deviceName: String

    package init(
        nonce: [UInt8],
        isRestored: Bool,
        device: DeviceID,
        serverClock: Timestamp,
        containers: [ContainerInfo],
        account: String,
        deviceName: String
    ) {
        self.nonce = nonce
        self.isRestored = isRestored
        self.device = device
        self.serverClock = serverClock
        self.containers = containers
        self.account = account
        self.deviceName = deviceName
    }
}

package struct CommitAnswer: Hashable, Sendable {
    /// One for each operation, in order.
    package var outcomes: [OperationOutcome]
    /// The container's newest log position after the commit.
    package var position: LogPosition

    package init(outcomes: [OperationOutcome], position: LogPosition) {
        self.outcomes = outcomes
        self.position = position
    }
}

package struct InvitationRequest: Hashable, Sendable {
    /// Empty: all.
    package var containers: [ContainerID]
    package var isReadOnly: Bool
    /// An embedded server shall listen with TLS on every address.
    package var opensNetwork: Bool
    /// The host that the other machine shall use; empty: the server guesses.
    package var address: String

    package init(
        containers: [ContainerID] = [],
        isReadOnly: Bool = false,
        opensNetwork: Bool = false,
        address: String = ""
    ) {
        self.containers = containers
        self.isReadOnly = isReadOnly
        self.opensNetwork = opensNetwork
        self.address = address
    }
}

/// What is typed on the other machine.
package struct Invitation: Hashable, Sendable {
    package var url: String
    package var code: String
    package var expires: Timestamp

    package init(url: String, code: String, expires: Timestamp) {
        self.url = url
        self.code = code
        self.expires = expires
    }
}
