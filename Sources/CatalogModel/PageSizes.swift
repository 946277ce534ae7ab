package import UbiquityModel

/// How long pages become, the same for all catalogues: about as long as they are on the wire.
extension CatalogPage {
    /// A page is cut where it passes so many bytes.
    package static let byteLimit = 4 * 1024 * 1024

    /// Longer manifests, in bytes as they are encoded, are asked for by content. 32 chunks of 36 bytes.
    package static let manifestByteLimit = 32 * 36
}

extension CatalogPage.Entry {
    package var byteCount: Int {
        256 + (manifest?.entries.count ?? 0) * 36 + item.conflicts.count * 256 + item.variableByteCount
    }
}

extension ItemVersion {
    /// So many versions of one item are listed: the newest saved ones, after the current one and the conflicts. Nobody looks through more.
    package static let listed = 10_000
}

extension DeletedItem {
    package var byteCount: Int { 512 + path.utf8.count + item.variableByteCount }
}

extension RemoteItem {
    fileprivate var variableByteCount: Int {
        let target = content.kind == .symlink ? Int(content.size) : 0
        return attributes.extended.reduce(target) { $0 + $1.key.count + $1.value.count }
    }
}
