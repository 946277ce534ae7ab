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

    package init(
        items: [RemoteItem] = [],
        manifests: [ContentID: Manifest] = [:],
        position: LogPosition,
        more: Bool = false,
        unknownPosition: Bool = false,
        head: LogPosition,
        refused: [String] = []
    ) {
        self.items = items
        self.manifests = manifests
        self.position = position
        self.more = more
        self.unknownPosition = unknownPosition
        self.head = head
        self.refused = refused
    }

    init(wire: WireChanges) throws(WireError) {
        self.init(
            position: try LogPosition(wire: wire.position),
            more: wire.more,
            unknownPosition: wire.unknownPosition,
            head: try LogPosition(wire: wire.head)
        )
        items.reserveCapacity(wire.items.count)
        for item in wire.items {
            do throws(WireError) { try append(item) } catch {
                refused.append("item \(Hexadecimal.encode(item.id)): \(error)")
            }
        }
    }

    private mutating func append(_ wire: WireItem) throws(WireError) {
        let item = try RemoteItem(wire: wire)
        items.append(item)
        // A manifest that is wrong leaves the item as it is: the manifest is asked for, and verified, when it is needed.
        if let (content, manifest) = try wire.inlineManifest(for: item) { manifests[content] = manifest }
    }
}
