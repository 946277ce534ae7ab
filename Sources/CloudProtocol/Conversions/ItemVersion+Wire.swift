internal import FoundationEssentials
package import UbiquityModel

extension ItemVersion {
    package init(wire: WireVersion) throws(WireError) {
        guard let kind = UInt8(exactly: wire.kind).flatMap(Kind.init(rawValue:)) else {
            throw .unknown("the kind of a version", value: "\(wire.kind)")
        }
        self.init(
            revision: try RevisionID(wire: wire.revision, "a version's revision"),
            kind: kind,
            content: try ContentID(wire: wire.content, "a version's content id"),
            size: try checkedSize(wire.size),
            edited: Timestamp(wire: wire.edited),
            modified: Timestamp(wire: wire.modified),
            device: wire.device,
            name: try Name(wire: wire.name)
        )
    }
}

extension WireVersion {
    package init(_ version: ItemVersion) {
        self.init()
        revision = version.revision.wire
        kind = UInt32(version.kind.rawValue)
        content = version.content.wire
        size = version.size
        edited = version.edited.wire
        modified = version.modified.wire
        device = version.device
        name = version.name.wire
    }
}
