package import SwiftProtobuf
package import UbiquityModel

/// A message that consists of items (`Changes`, `ChildrenResponse`): the items, and what else is in it.
///
/// On the wire it is what messages/feed.proto says. A container may have a million items, and as objects of generated code, with their
/// parts, they take ten times as long as their bytes do (measured: 8 us an item to decode one). So the plain ones, nearly all, are read
/// and written by `PlainItem`; those with conflicts, extended attributes, links, and whatever is not as expected go the general way, which
/// also says what is wrong with them.
package struct ItemPage<Rest: Message> {
    /// The field of the items, in both messages, as it stands on the wire.
    private static var itemsTag: UInt64 { 1 << 3 | 2 }

    package private(set) var items: [RemoteItem] = []
    /// Of those contents whose manifest is short enough to come along.
    package private(set) var manifests: [ContentID: Manifest] = [:]
    /// Items that are not in the page because they cannot be, in words: one of them must not lose the others.
    package private(set) var refused: [String] = []
    /// The message without its items.
    package private(set) var rest = Rest()

    package init(body: [UInt8]) throws(WireError) {
        guard let list = body.withUnsafeBytes({ WireList($0, tag: Self.itemsTag) }) else {
            throw .undecodable("a message of the kind \(Rest.protoMessageName)")
        }
        // Each that cannot be is told of in words, which are longer than it is.
        guard list.ranges.count <= CloudLimits.itemsPerMessage else {
            throw .tooMany("items in one message", list.ranges.count, limit: CloudLimits.itemsPerMessage)
        }
        rest = try Rest(body: list.others)
        items.reserveCapacity(list.ranges.count)
        for range in list.ranges {
            let plain = body.withUnsafeBytes { PlainItem.decode(UnsafeRawBufferPointer(rebasing: $0[range])) }
            if let plain {
                items.append(plain.item)
                if let (content, manifest) = plain.manifest { manifests[content] = manifest }
            } else {
                // A message that cannot be decoded is no page at all.
                add(try WireItem(body: Array(body[range])))
            }
        }
    }

    private mutating func add(_ wire: WireItem) {
        do throws(WireError) {
            let item = try RemoteItem(wire: wire)
            items.append(item)
            // A manifest that is wrong leaves the item as it is: the manifest is asked for, and verified, when it is needed.
            if let (content, manifest) = try wire.inlineManifest(for: item) { manifests[content] = manifest }
        } catch {
            refused.append("item \(Hexadecimal.encode(wire.id)): \(error)")
        }
    }

    /// The bytes of the message that has these items and is `rest` for the rest.
    package static func body(
        _ items: some Collection<(item: RemoteItem, manifest: Manifest?)>,
        _ rest: Rest
    ) throws(WireError) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256 * items.count)
        for (item, manifest) in items {
            bytes.appendVarint(itemsTag)
            if PlainItem.isPlain(item) {
                PlainItem.append(item, manifest, to: &bytes)
            } else {
                let encoded = try WireItem(item, manifest: manifest).body
                bytes.appendVarint(UInt64(encoded.count))
                bytes += encoded
            }
        }
        // Messages one after the other are one message.
        return try bytes + rest.body
    }
}
