import UbiquityModel

@testable import CatalogStore
@testable import Replica

/// Values in columns of the databases and in extended attributes.
extension FuzzTarget {
    static let database: [FuzzTarget] = [
        FuzzTarget("a placeholder") { arbitrary in
            Placeholder(
                revision: arbitrary.identifier(),
                generation: UInt64(bitPattern: arbitrary.integer()),
                size: arbitrary.size(),
                modified: arbitrary.time(),
                mode: UInt16(arbitrary.below(0o1000))
            ).encoded
        } check: { bytes in
            guard let placeholder = Placeholder(encoded: bytes) else { return false }
            try promise(placeholder.size >= 0, "\(placeholder.size) bytes")
            try promise(Placeholder(encoded: placeholder.encoded) == placeholder, "another placeholder")
            return true
        },
        FuzzTarget("ranges") { arbitrary in
            var ranges = ByteRangeSet()
            for _ in 0..<arbitrary.below(6) {
                let bounds = [arbitrary.size(), arbitrary.size()].sorted()
                ranges.insert(bounds[0]..<bounds[1])
            }
            return ranges.encoded
        } check: { bytes in
            guard let ranges = ByteRangeSet(encoded: bytes) else { return false }
            try promise(ranges.encoded == bytes, "other ranges")
            try promise(ranges.count >= 0 && ranges.missing(in: 0..<Int64.max).allSatisfy { !$0.isEmpty }, "\(ranges)")
            return true
        },
        FuzzTarget("versions in a row") { arbitrary in
            var versions = [ItemVersion]()
            for _ in 0..<arbitrary.below(4) { versions.append(try arbitrary.version()) }
            return VersionCoding.encode(versions)
        } check: { bytes in
            guard let versions = try? VersionCoding.decode(bytes) else { return false }
            try promise(versions.allSatisfy { $0.size >= 0 }, "a version of less than nothing")
            try promise(try VersionCoding.decode(VersionCoding.encode(versions)) == versions, "other versions")
            return true
        },
        FuzzTarget("extended attributes in a row") { arbitrary in
            ExtendedCoding.encode(arbitrary.attributes().extended)
        } check: { bytes in
            guard let attributes = try? ExtendedCoding.decode(bytes) else {
                try promise((try? ExtendedAttributesBlob.decode(bytes)) == nil, "only the server takes it")
                return false
            }
            try promise(try ExtendedCoding.decode(ExtendedCoding.encode(attributes)) == attributes, "other attributes")
            try promise(try ExtendedAttributesBlob.decode(bytes) == attributes, "others for the server")
            return true
        },
        FuzzTarget("a position in a row") { arbitrary in
            MetaTable.encode(arbitrary.position())
        } check: { bytes in
            guard let position = try? MetaTable.decodePosition(bytes) else { return false }
            try promise([0, 32].contains(position.hash.count), "a hash of \(position.hash.count) bytes")
            try promise(try MetaTable.decodePosition(MetaTable.encode(position)) == position, "another position")
            return true
        },
        FuzzTarget("an inode's key") { arbitrary in
            let words = (
                UInt64(bitPattern: arbitrary.integer()), UInt64(arbitrary.below(9)), UInt64(arbitrary.below(2))
            )
            return InodeKey(tag: UInt64(arbitrary.below(99)), words: words).bytes
        } check: { bytes in
            guard let key = InodeKey(bytes: bytes) else { return false }
            try promise(InodeKey(bytes: key.bytes) == key, "another key")
            return true
        },
        FuzzTarget("a grant", words: ["\n", "/", "..", "Documents"]) { _ in
            Array("Documents\nPhotos".utf8)
        } check: { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            let containers = GrantedContainers.decode(text)
            // What is damaged never gives more.
            try promise(containers != nil, "a grant of everything")
            return containers?.isEmpty == false
        },
    ]
}
