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
        (items, manifests, refused) = decoded(wire.items)
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

    init(wire: WireChildrenResponse) throws(WireError) {
        complete = Int(wire.complete)
        last = try wire.decodedLast()
        (items, manifests, refused) = decoded(wire.items)
    }
}

private func decoded(_ items: [WireItem]) -> (items: [RemoteItem], manifests: [ContentID: Manifest], refused: [String])
{
    var result: (items: [RemoteItem], manifests: [ContentID: Manifest], refused: [String]) = ([], [:], [])
    result.items.reserveCapacity(items.count)
    for wire in items {
        do throws(WireError) {
            let item = try RemoteItem(wire: wire)
            result.items.append(item)
            // A manifest that is wrong leaves the item as it is: the manifest is asked for, and verified, when it is needed.
            if let (content, manifest) = try wire.inlineManifest(for: item) { result.manifests[content] = manifest }
        } catch {
            result.refused.append("item \(Hexadecimal.encode(wire.id)): \(error)")
        }
    }
    return result
}
