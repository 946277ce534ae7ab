internal import CatalogModel
internal import CloudProtocol
internal import NIOCore
internal import UbiquityModel

/// Where a feed stands after a page.
struct FeedPlace: Sendable {
    let position: LogPosition
    /// What the container declares, as the device knows it by then.
    let packages: PackageDeclaration
    let hasMore: Bool
    let isUnknownPosition: Bool
}

/// A page of the feed as it is sent.
struct FeedPage: Sendable {
    let place: FeedPlace
    let tellsPackages: Bool
    /// Of the log when the page was read.
    let head: LogPosition
    /// With its length before it.
    let body: ByteBuffer

    /// - Parameter former: what the device knows that the container declares; `nil`: nothing, so that the page tells it.
    init(_ page: CatalogPage, after former: PackageDeclaration?) throws(WireError) {
        place = FeedPlace(
            position: page.position,
            packages: page.packages,
            hasMore: page.hasMore,
            isUnknownPosition: page.isUnknownPosition
        )
        tellsPackages = page.packages != former
        head = page.head
        body = ByteBuffer(bytes: LengthPrefix.encode(try page.body(tellsPackages: tellsPackages)))
    }
}

/// All that a page depends on, besides how long pages are. No right of the device is among it: what a device may do decides whether it
/// gets a page, not what is in it.
///
/// The head has a running hash, so it stands for all that was ever committed. What changes without a commit is what is kept of saved
/// versions and of deleted items: of the latter a page may still tell the manifest that was there when it was read.
struct FeedQuestion: Equatable, Sendable {
    /// The container's number in the catalogue, which no other one ever gets.
    let container: Int64
    let since: LogPosition
    let head: LogPosition
    let packages: PackageDeclaration
    /// What the device knows of them.
    let former: PackageDeclaration
}
