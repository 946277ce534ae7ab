package import FoundationEssentials
package import UbiquityModel

// Requests and answers that are lists of identifiers.

extension Digest {
    /// The ids of a list in a message, each checked.
    package static func list(wire: [Data], _ field: String) throws(WireError) -> [Self] {
        try wire.map { (data) throws(WireError) in try Self(wire: data, field) }
    }
}

extension WireHaveRequest {
    package init(chunks: [ChunkID]) {
        self.init()
        self.chunks = chunks.map(\.wire)
    }
}

extension WireHaveResponse {
    /// The chunks of `asked` that the server lacks.
    package func missing(of asked: [ChunkID]) throws(WireError) -> [ChunkID] {
        try missing.map { (index) throws(WireError) in
            guard index < asked.count else { throw .outOfRange("the index of a missing chunk", value: Int64(index)) }
            return asked[Int(index)]
        }
    }
}

extension WireFetchRequest {
    package init(chunks: [ChunkID], examine: Bool) {
        self.init()
        self.chunks = chunks.map(\.wire)
        self.examine = examine
    }
}

extension WireManifestRequest {
    /// - Parameter base: a content whose manifest is known here.
    package init(contents: [ContentID], base: ContentID? = nil) {
        self.init()
        self.contents = contents.map(\.wire)
        if let base { self.base = base.wire }
    }
}

extension WireManifestAnswer {
    /// - Parameter manifest: `nil` if the content is not known.
    package init(content: ContentID, manifest: Manifest?) {
        self.init()
        self.content = content.wire
        self.manifest = Data(manifest?.encoded ?? [])
        known = manifest != nil
    }

    /// The same as a difference to a manifest that the device has, where that is much shorter.
    package init(content: ContentID, manifest: Manifest, base: Manifest) {
        self.init(content: content, manifest: nil)
        known = true
        if let short = ManifestDifference(from: base, to: manifest).encodedIfShort(insteadOf: manifest) {
            difference = Data(short)
        } else {
            self.manifest = Data(manifest.encoded)
        }
    }

    /// `nil` if the content is not known to the server.
    /// - Parameter base: the manifest of the content that the question named.
    package func decoded(base: Manifest? = nil) throws(WireError) -> (content: ContentID, manifest: Manifest)? {
        let content = try ContentID(wire: self.content, "a content's id")
        guard known else { return nil }
        guard !difference.isEmpty else { return (content, try Manifest(wire: manifest, size: nil)) }
        guard manifest.isEmpty else { throw .contradiction("a manifest and a difference") }
        guard let base, let difference = ManifestDifference(encoded: difference),
            let manifest = difference.applied(to: base, limit: ManifestDifference.longest)
        else { throw .undecodable("the difference between two manifests") }
        return (content, manifest)
    }
}

extension WireConfirmation {
    package init(item: ItemID, revision: RevisionID) {
        self.init()
        self.item = item.wire
        self.revision = revision.wire
    }

    package func decoded() throws(WireError) -> (item: ItemID, revision: RevisionID) {
        (try ItemID(wire: item, "the item's id"), try RevisionID(wire: revision, "the revision"))
    }
}

extension WireVersionsRequest {
    package init(item: ItemID) {
        self.init()
        self.item = item.wire
    }

    package func decoded() throws(WireError) -> ItemID { try ItemID(wire: item, "the item's id") }
}

extension WireChildrenRequest {
    package init(folders: [ItemID], after: Name?) {
        self.init()
        self.folders = folders.map(\.wire)
        self.after = after?.wire ?? .init()
    }

    package func decoded() throws(WireError) -> (folders: [ItemID], after: Name?) {
        (
            try folders.map { (id) throws(WireError) in try ItemID(wire: id, "a folder's id") },
            after.isEmpty ? nil : try Name(wire: after)
        )
    }
}

extension WireChildrenResponse {
    /// Without its items: see `ItemPage`.
    package init(complete: Int, last: Name?) {
        self.init()
        self.complete = UInt32(complete)
        self.last = last?.wire ?? .init()
    }

    package func decodedLast() throws(WireError) -> Name? { last.isEmpty ? nil : try Name(wire: last) }
}
