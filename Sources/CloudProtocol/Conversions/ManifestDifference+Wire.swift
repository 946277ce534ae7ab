internal import FoundationEssentials
package import UbiquityModel

extension ManifestDifference {
    /// No manifest that a difference makes has more entries: as many as one commit can carry.
    package static let longest = CloudLimits.messageBytes / 36
    /// A longer difference is not sent: then the manifest itself is.
    private static let longestEncoded = 128 * 1024

    /// `nil` where the manifest itself might as well be sent.
    func encodedIfShort(insteadOf manifest: Manifest) -> [UInt8]? {
        let encoded = encoded
        return encoded.count <= min(manifest.entries.count * 18, Self.longestEncoded) ? encoded : nil
    }
}

/// An edit whose manifest came as a difference to the manifest of a content that the server should know.
package struct BasedOperation: Hashable, Sendable {
    package let item: ItemID?
    /// Whose manifest is the base.
    package let base: ContentID
    private let wire: WireOperation
    private let difference: ManifestDifference

    /// `nil` for an operation that is complete in itself.
    init?(_ wire: WireOperation) throws(WireError) {
        guard case .edit(let edit)? = wire.action, !edit.manifestBase.isEmpty else { return nil }
        guard edit.manifest.isEmpty else { throw .contradiction("a manifest and a difference") }
        guard let difference = ManifestDifference(encoded: edit.manifestDifference) else {
            throw .undecodable("the difference between two manifests")
        }
        item = ItemID(bytes: wire.item)
        base = try ContentID(wire: edit.manifestBase, "the base of a manifest")
        self.wire = wire
        self.difference = difference
    }

    /// How many entries the manifest has.
    package var count: Int { difference.count }

    /// The operation with its manifest.
    /// - Parameter limit: how many entries that may have.
    package func operation(base: Manifest, limit: Int) throws(WireError) -> ItemOperation {
        guard let manifest = difference.applied(to: base, limit: limit) else {
            throw .contradiction("the difference is not one to its base, or makes too long a manifest")
        }
        guard case .edit(var edit)? = wire.action else { throw .missing("what the operation does") }
        edit.manifestBase = Data()
        edit.manifestDifference = Data()
        edit.manifest = Data(manifest.encoded)
        var complete = wire
        complete.action = .edit(edit)
        return try ItemOperation(wire: complete)
    }
}

extension WireOperation {
    /// The edit with its manifest as a difference; the operation as it is where that is not much shorter.
    package init(_ operation: ItemOperation, base content: ContentID, _ base: Manifest) {
        guard case .edit(_, _, _, let manifest, _) = operation.action,
            let short = ManifestDifference(from: base, to: manifest).encodedIfShort(insteadOf: manifest)
        else {
            self.init(operation)
            return
        }
        self.init(operation.withoutManifest)
        guard case .edit(var edit)? = action else { preconditionFailure("an edit is sent as an edit") }
        edit.manifestBase = content.wire
        edit.manifestDifference = Data(short)
        action = .edit(edit)
    }

    /// Whether the manifest is told as a difference.
    package var isBased: Bool {
        if case .edit(let edit)? = action { !edit.manifestBase.isEmpty } else { false }
    }
}

extension ItemOperation {
    fileprivate var withoutManifest: ItemOperation {
        guard case .edit(let base, let content, let attributes, _, let edited) = action else { return self }
        var short = self
        short.action = .edit(
            base: base,
            content: content,
            attributes: attributes,
            manifest: Manifest(),
            edited: edited
        )
        return short
    }
}
