import CloudProtocol
import UbiquityModel

/// Items that are right in every respect, for tests that spoil one.
enum Samples {
    static func digest<Kind>(_ byte: UInt8) throws -> Digest<Kind> {
        guard let digest = Digest<Kind>(bytes: [UInt8](repeating: byte, count: 32)) else { throw SampleError() }
        return digest
    }

    static func name(_ text: String) throws -> Name { try Name(text) }

    static let folder = ItemID(high: 1, low: 1)
    static let item = ItemID(high: 2, low: 2)
    static let revision = RevisionID(high: 3, low: 3)

    static func place() throws -> Place { Place(parent: folder, name: try name("report.txt")) }

    static func manifest() throws -> Manifest {
        Manifest(entries: [.init(chunk: try digest(7), length: 100_000), .init(chunk: try digest(8), length: 23)])
    }

    static func attributes() -> ItemAttributes {
        ItemAttributes(
            modified: Timestamp(nanoseconds: -5),
            mode: 0o640,
            extended: [Array("user.comment".utf8): [0, 255], Array("user.ubiquity.package".utf8): Array("1".utf8)]
        )
    }

    static func file() throws -> ItemContent {
        .file(FileContent(revision: revision, content: try digest(9), size: 100_023))
    }

    static func version(_ kind: ItemVersion.Kind = .conflict) throws -> ItemVersion {
        ItemVersion(
            revision: RevisionID(high: 4, low: 4),
            kind: kind,
            content: try digest(5),
            size: 12,
            edited: Timestamp(nanoseconds: 1),
            modified: Timestamp(nanoseconds: 2),
            device: "laptop",
            name: try name("old.txt")
        )
    }

    static func remote(_ content: ItemContent? = nil) throws -> RemoteItem {
        RemoteItem(
            id: item,
            place: try place(),
            content: try content ?? file(),
            attributes: attributes(),
            position: 42,
            isDeleted: true,
            author: "laptop",
            edited: Timestamp(nanoseconds: 77),
            conflicts: [try version()]
        )
    }

    struct SampleError: Error {}
}
