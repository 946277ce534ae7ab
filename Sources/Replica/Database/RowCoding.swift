internal import SQLiteRows
internal import UbiquityModel

/// The columns that a remote and a synced row begin with, in this order.
enum ItemColumns {
    static let names = "id, parent, name, kind, revision, content, size, target, modified, mode, extended"
    static let count = 11

    /// Without an array of them: there may be a million.
    static func bind(
        _ id: ItemID,
        _ place: Place,
        _ content: ItemContent,
        _ attributes: ItemAttributes,
        _ row: inout ValueBinder
    ) {
        row.append(id)
        row.append(place.parent)
        row.append(place.name.bytes)
        row.append(Int64(content.kind.rawValue))
        switch content {
        case .folder:
            row.appendNull()
            row.appendNull()
            row.append(0)
            row.appendNull()
        case .symlink(let target):
            row.appendNull()
            row.appendNull()
            row.append(Int64(target.count))
            row.append(target)
        case .file(let file):
            row.append(file.revision)
            if let content = file.content { row.append(content) } else { row.appendNull() }
            row.append(file.size)
            row.appendNull()
        }
        row.append(attributes.modified.nanoseconds)
        row.append(Int64(attributes.mode))
        if attributes.extended.isEmpty {
            row.appendNull()
        } else {
            row.append(ExtendedCoding.encode(attributes.extended))
        }
    }

    static func decode(
        _ row: SQLRow
    ) throws -> (id: ItemID, place: Place, content: ItemContent, attributes: ItemAttributes) {
        guard let id = row.identifier(0, ItemKindTag.self), let parent = row.identifier(1, ItemKindTag.self),
            let name = row.blob(2).flatMap({ try? Name(bytes: $0) }), let content = content(row)
        else { throw ReplicaError.corrupted("a row of the state database") }
        var extended = [[UInt8]: [UInt8]]()
        if let encoded = row.blob(10) { extended = try ExtendedCoding.decode(encoded) }
        let attributes = ItemAttributes(
            modified: Timestamp(nanoseconds: row.integer(8)),
            mode: UInt16(truncatingIfNeeded: row.integer(9)),
            extended: extended
        )
        return (id, Place(parent: parent, name: name), content, attributes)
    }

    private static func content(_ row: SQLRow) -> ItemContent? {
        let kind = UInt8(exactly: row.integer(3)).flatMap(ItemKind.init(rawValue:))
        switch kind {
        case .folder: return .folder
        case .symlink: return row.blob(7).map { .symlink(target: $0) }
        case .file, .package:
            let isPackage = kind == .package
            let size = row.integer(6)
            guard let revision = row.identifier(4, RevisionKindTag.self), size >= 0 else { return nil }
            guard let bytes = row.bytes(5) else {
                return .file(FileContent(revision: revision, content: nil, size: size, isPackage: isPackage))
            }
            // One that cannot be read is not one that has not come yet.
            return ContentID(bytes: bytes).map {
                .file(FileContent(revision: revision, content: $0, size: size, isPackage: isPackage))
            }
        case nil: return nil
        }
    }
}

/// Extended attributes as one value, sorted, so that equal sets are equal bytes.
enum ExtendedCoding {
    static func encode(_ attributes: [[UInt8]: [UInt8]]) -> [UInt8] {
        var writer = ByteWriter()
        for (name, value) in attributes.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            writer.prefixed(name)
            writer.prefixed(value)
        }
        return writer.result
    }

    static func decode(_ bytes: [UInt8]) throws -> [[UInt8]: [UInt8]] {
        var reader = ByteReader(bytes)
        var result = [[UInt8]: [UInt8]]()
        while !reader.isAtEnd {
            guard let name = reader.prefixed(), let value = reader.prefixed() else {
                throw ReplicaError.corrupted("the extended attributes in a row of the state database")
            }
            result[name] = value
        }
        return result
    }
}

/// Conflict versions as one value.
enum VersionCoding {
    static func encode(_ versions: [ItemVersion]) -> [UInt8] {
        var writer = ByteWriter()
        for version in versions {
            writer.bytes(version.revision.bytes)
            writer.integer(version.kind.rawValue)
            writer.bytes(version.content.bytes)
            writer.integer(version.size)
            writer.integer(version.edited.nanoseconds)
            writer.integer(version.modified.nanoseconds)
            writer.prefixed(Array(version.device.utf8))
            writer.prefixed(version.name.bytes)
        }
        return writer.result
    }

    static func decode(_ bytes: [UInt8]) throws -> [ItemVersion] {
        var reader = ByteReader(bytes)
        var result: [ItemVersion] = []
        while !reader.isAtEnd {
            guard let revision = reader.bytes(16).flatMap({ RevisionID(bytes: $0) }),
                let kind = reader.integer(UInt8.self).flatMap(ItemVersion.Kind.init(rawValue:)),
                let content = reader.bytes(32).flatMap({ ContentID(bytes: $0) }),
                let size = reader.integer(Int64.self), size >= 0,
                let edited = reader.integer(Int64.self),
                let modified = reader.integer(Int64.self),
                let device = reader.prefixed(),
                let name = reader.prefixed().flatMap({ try? Name(bytes: $0) })
            else { throw ReplicaError.corrupted("the versions in a row of the state database") }
            result.append(
                ItemVersion(
                    revision: revision,
                    kind: kind,
                    content: content,
                    size: size,
                    edited: Timestamp(nanoseconds: edited),
                    modified: Timestamp(nanoseconds: modified),
                    device: String(decoding: device, as: UTF8.self),
                    name: name
                )
            )
        }
        return result
    }
}
