package import UbiquityModel

/// What a package is made of: the beginning of its content, before the bytes of its files, which follow one after the other in the order
/// of their paths.
///
/// The same package has the same index on every device, so that equal packages are equal contents; and each file begins a chunk of its
/// own, so that what did not change is not sent again.
package struct PackageIndex: Hashable, Sendable {
    package struct Element: Hashable, Sendable {
        package enum Kind: Hashable, Sendable {
            case folder
            /// The target, as of any symbolic link.
            case symlink(target: [UInt8])
            case file(size: Int64, modified: Timestamp)
        }

        /// Below the package's folder.
        package var path: ItemPath
        package var kind: Kind
        /// True permission bits; 0 of a symbolic link.
        package var mode: UInt16
        package var extended: [[UInt8]: [UInt8]]

        package init(path: ItemPath, kind: Kind, mode: UInt16, extended: [[UInt8]: [UInt8]] = [:]) {
            self.path = path
            self.kind = kind
            self.mode = mode & 0o777
            self.extended = extended
        }

        /// Bytes in the content; 0 of all but files.
        package var size: Int64 { if case .file(let size, _) = kind { size } else { 0 } }
    }

    /// Ascending by path: folders before what lies in them.
    package let elements: [Element]
    package let encoded: [UInt8]

    package init(_ elements: [Element]) {
        self.elements = elements.sorted { $0.path < $1.path }
        encoded = Self.encode(self.elements)
    }

    /// Of the whole content, in bytes.
    package var contentSize: Int64 { elements.reduce(Int64(encoded.count)) { Sizes.sum($0, $1.size) } }

    /// The newest time of a file in it, which stands for the package's; the epoch if there is no file.
    package var modified: Timestamp {
        elements.reduce(Timestamp(nanoseconds: 0)) { newest, element in
            if case .file(_, let modified) = element.kind { max(newest, modified) } else { newest }
        }
    }

    /// Whether every device can read it. What none could, this one included, is not to be sent.
    package var isReadable: Bool {
        encoded.count <= Self.longest && elements.allSatisfy { $0.path.names.count <= Self.deepest }
    }

    /// Each file with where its bytes begin in the content.
    package var files: [(element: Element, offset: Int64)] {
        var offset = Int64(encoded.count)
        return elements.compactMap { element in
            guard case .file(let size, _) = element.kind else { return nil }
            defer { offset += size }
            return (element, offset)
        }
    }

    // MARK: Coding

    /// "UBPK", version (2 bytes), 2 bytes that are 0, length of the index (8), number of elements (4); then each element: kind (1), mode
    /// (2), path with `/` between its names, extended attributes, and by its kind size (8) and modification time (8), or target. Integers
    /// are big-endian, of what has no fixed length the length (4) comes first.
    private static let magic = Array("UBPK".utf8)
    private static let version: UInt16 = 1
    /// Bytes before the elements: with these the length of the whole is known.
    package static let headerSize = 20
    /// PATH_MAX has room for so many names. Deeper folders can be made, from within one another.
    private static let deepest = 2048
    /// 1 GiB holds an index of some ten million elements.
    package static let longest = 1 << 30

    private enum KindCode: UInt8 {
        case file = 1
        case folder = 2
        case symlink = 3
    }

    private static func encode(_ elements: [Element]) -> [UInt8] {
        var body = ByteWriter()
        for element in elements {
            let code: KindCode =
                switch element.kind {
                case .file: .file
                case .folder: .folder
                case .symlink: .symlink
                }
            body.integer(code.rawValue)
            body.integer(element.mode)
            body.prefixed(element.path.bytes)
            body.prefixed(element.extended.isEmpty ? [] : ExtendedCoding.encode(element.extended))
            switch element.kind {
            case .folder: break
            case .symlink(let target): body.prefixed(target)
            case .file(let size, let modified):
                body.integer(size)
                body.integer(modified.nanoseconds)
            }
        }
        var writer = ByteWriter()
        writer.bytes(magic)
        writer.integer(version)
        writer.integer(UInt16(0))
        writer.integer(UInt64(headerSize + body.result.count))
        writer.integer(UInt32(elements.count))
        writer.bytes(body.result)
        return writer.result
    }

    package enum Fault: Error, Hashable {
        case noIndex
        case tooNew(version: UInt16)
        case damaged(String)
    }

    /// How many bytes of the content the index takes, by its first `headerSize` ones.
    package static func length(header: some Collection<UInt8>) throws(Fault) -> Int {
        var reader = ByteReader(Array(header.prefix(headerSize)))
        guard header.count >= headerSize, reader.bytes(4) == magic, let version = reader.integer(UInt16.self) else {
            throw .noIndex
        }
        guard version == Self.version else { throw .tooNew(version: version) }
        guard reader.integer(UInt16.self) == 0, let length = reader.integer(UInt64.self), length >= headerSize,
            length <= longest
        else { throw .damaged("its length") }
        return Int(length)
    }

    /// - Parameter contentSize: of the whole content, which the sizes must add up to.
    package init(encoded bytes: [UInt8], contentSize: Int64) throws(Fault) {
        guard try Self.length(header: bytes) == bytes.count else { throw .damaged("its length") }
        var reader = ByteReader(bytes)
        _ = reader.bytes(Self.headerSize - 4)
        guard let count = reader.integer(UInt32.self) else { throw .noIndex }
        var elements: [Element] = []
        var folders: Set<ItemPath> = [.root]
        for _ in 0..<count {
            let element = try Self.element(&reader)
            // Sorted, so that there is one way to write it, and no path twice.
            if let last = elements.last, !(last.path < element.path) { throw .damaged("the order of its paths") }
            guard folders.contains(element.path.parent) else { throw .damaged("a path that leads through no folder") }
            if element.kind == .folder { folders.insert(element.path) }
            elements.append(element)
        }
        guard reader.isAtEnd else { throw .damaged("bytes behind its end") }
        self.elements = elements
        encoded = bytes
        guard self.contentSize == contentSize else { throw .damaged("sizes that do not add up to the content's") }
    }

    private static func element(_ reader: inout ByteReader) throws(Fault) -> Element {
        guard let code = reader.integer(UInt8.self).flatMap(KindCode.init), let mode = reader.integer(UInt16.self),
            mode <= 0o777,
            let path = reader.prefixed(), let attributes = reader.prefixed()
        else { throw .damaged("an element") }
        var names: [Name] = []
        for part in path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard let name = try? Name(bytes: part) else { throw .damaged("a name") }
            names.append(name)
        }
        guard names.count <= deepest else { throw .damaged("a path of more than \(deepest) names") }
        guard let extended = try? ExtendedCoding.decode(attributes),
            extended.keys.allSatisfy(ExtendedAttributes.isSynced)
        else { throw .damaged("extended attributes") }
        let kind: Element.Kind
        switch code {
        case .folder: kind = .folder
        case .symlink:
            guard let target = reader.prefixed(), (1...4095).contains(target.count), !target.contains(0) else {
                throw .damaged("a symbolic link's target")
            }
            kind = .symlink(target: target)
        case .file:
            guard let size = reader.integer(Int64.self), size >= 0, let modified = reader.integer(Int64.self) else {
                throw .damaged("a file")
            }
            kind = .file(size: size, modified: Timestamp(nanoseconds: modified))
        }
        return Element(path: ItemPath(names), kind: kind, mode: mode, extended: extended)
    }
}

extension PackageIndex.Fault: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noIndex: "the content of the package has no index"
        case .tooNew(let version): "the package's index has format \(version), which a newer version of ubiquity reads"
        case .damaged(let what): "the package's index is damaged: \(what)"
        }
    }
}
