internal import CloudProtocol
package import UbiquityModel

/// Items in order of their positions, each with its newest state.
package struct ChangesPage: Hashable, Sendable {
    package var items: [RemoteItem]
    /// Of those contents whose manifest is short enough to come along.
    package var manifests: [ContentID: Manifest]
    /// After this page.
    package var position: LogPosition
    /// Further pages follow at once.
    package var more: Bool
    /// The server does not know the position asked from: take a full listing.
    package var unknownPosition: Bool
    /// The container's newest position when the page was made.
    package var head: LogPosition
    /// Items that are not in the page because they cannot be, in words: one of them must not lose the others.
    package var refused: [String]
    /// What the container declares, where that is told.
    package var packages: PackageDeclaration?

    package init(
        items: [RemoteItem] = [],
        manifests: [ContentID: Manifest] = [:],
        position: LogPosition,
        more: Bool = false,
        unknownPosition: Bool = false,
        head: LogPosition,
        refused: [String] = [],
        packages: PackageDeclaration? = nil
    ) {
        self.items = items
        self.manifests = manifests
        self.position = position
        self.more = more
        self.unknownPosition = unknownPosition
        self.head = head
        self.refused = refused
        self.packages = packages
    }

    init(body: [UInt8]) throws(WireError) {
        let page = try ItemPage<WireChanges>(body: body)
        self.init(
            items: page.items,
            manifests: page.manifests,
            position: try LogPosition(wire: page.rest.position),
            more: page.rest.more,
            unknownPosition: page.rest.unknownPosition,
            head: try LogPosition(wire: page.rest.head),
            refused: page.refused,
            packages: page.rest.hasPackages ? PackageDeclaration(told: page.rest.packages) : nil
        )
    }
}

/// What lies in some folders.
package struct ChildrenPage: Hashable, Sendable {
    package var items: [RemoteItem]
    package var manifests: [ContentID: Manifest]
    /// So many of the folders that were asked for are told whole.
    package var complete: Int
    /// Up to which name the folder after them is told; `nil`: nothing of it.
    package var last: Name?
    package var refused: [String]

    init(body: [UInt8]) throws(WireError) {
        let page = try ItemPage<WireChildrenResponse>(body: body)
        items = page.items
        manifests = page.manifests
        refused = page.refused
        complete = Int(page.rest.complete)
        last = try page.rest.decodedLast()
    }
}
