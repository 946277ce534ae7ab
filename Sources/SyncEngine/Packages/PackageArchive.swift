import Replica
import UbiquityModel

/// A package as one file: a tar archive (POSIX pax interchange format), and where in it each byte of the package's content belongs, so that
/// its files come straight to their places.
///
/// The same version gives the same bytes on every device. Owners are not sent, so it names none; whoever unpacks it owns it.
struct PackageArchive: Sendable {
    /// What is not content: headers, and what fills blocks up. Ascending by where each begins.
    private(set) var headers: [(offset: Int64, bytes: [UInt8])] = []
    /// In bytes.
    private(set) var size: Int64 = 0
    /// Where files begin that are not empty, in the content and in the archive.
    private var files: [(content: Int64, archive: Int64)] = []

    private static let block = 512
    /// The greatest number of eleven octal digits.
    private static let greatest: Int64 = 0o777_7777_7777

    /// - Parameters:
    ///   - name: of the folder in which all of it lies.
    ///   - modified: the time of folders and links, of which none is sent.
    ///   - mode: of that folder.
    init(_ index: PackageIndex, name: Name, modified: Timestamp, mode: UInt16) {
        add(Entry(path: name.bytes + [UInt8(ascii: "/")], kind: .folder, mode: mode, modified: modified))
        for (element, offset) in Self.placed(index) {
            var entry = Entry(
                path: name.bytes + [UInt8(ascii: "/")] + element.path.bytes,
                kind: .file,
                mode: element.mode,
                modified: modified,
                extended: element.extended
            )
            switch element.kind {
            case .folder:
                entry.kind = .folder
                entry.path.append(UInt8(ascii: "/"))
            case .symlink(let target):
                entry.kind = .symlink
                entry.target = target
                entry.mode = 0o777
            case .file(let size, let modified):
                entry.size = size
                entry.modified = modified
            }
            add(entry)
            guard element.size > 0 else { continue }
            files.append((content: offset, archive: size))
            size = Sizes.sum(size, element.size)
            addPadding()
        }
        // Two empty blocks end it.
        append([UInt8](repeating: 0, count: 2 * Self.block))
    }

    private static func placed(_ index: PackageIndex) -> [(PackageIndex.Element, offset: Int64)] {
        var offset = Int64(index.encoded.count)
        return index.elements.map { element in
            defer { offset = Sizes.sum(offset, element.size) }
            return (element, offset)
        }
    }

    /// Where in the archive a byte of the content is that belongs to a file.
    func offset(of content: Int64) -> Int64? {
        var (low, high) = (0, files.count)
        while low < high {
            let middle = (low + high) / 2
            if files[middle].content <= content { low = middle + 1 } else { high = middle }
        }
        guard low > 0 else { return nil }
        return files[low - 1].archive + content - files[low - 1].content
    }

    // MARK: Headers

    private enum Kind: UInt8 {
        case file = 0x30
        case symlink = 0x32
        case folder = 0x35
        /// What the next entry has that does not fit into its header.
        case extended = 0x78
    }

    private struct Entry {
        var path: [UInt8]
        var kind: Kind
        var mode: UInt16
        var modified: Timestamp
        var size: Int64 = 0
        var target: [UInt8] = []
        var extended: [[UInt8]: [UInt8]] = [:]
    }

    private mutating func add(_ entry: Entry) {
        let records = Self.records(of: entry)
        if !records.isEmpty {
            var extended = entry
            extended.path = Array("PaxHeaders/".utf8) + Self.shortName(of: entry.path)
            extended.kind = .extended
            extended.mode = 0o644
            extended.size = Int64(records.count)
            extended.target = []
            append(Self.header(of: extended))
            append(records)
            addPadding()
        }
        append(Self.header(of: entry))
    }

    /// For whoever unpacks it without knowing this format.
    private static func shortName(of path: [UInt8]) -> ArraySlice<UInt8> {
        path.split(separator: UInt8(ascii: "/")).last?.prefix(80) ?? []
    }

    private mutating func append(_ bytes: [UInt8]) {
        headers.append((offset: size, bytes: bytes))
        size = Sizes.sum(size, Int64(bytes.count))
    }

    private mutating func addPadding() {
        let over = Int(size % Int64(Self.block))
        if over > 0 { append([UInt8](repeating: 0, count: Self.block - over)) }
    }

    /// `LENGTH KEY=VALUE` and a line feed for each; the length counts itself.
    private static func records(of entry: Entry) -> [UInt8] {
        var records: [UInt8] = []
        func add(_ key: [UInt8], _ value: [UInt8]) {
            let rest = [UInt8(ascii: " ")] + key + [UInt8(ascii: "=")] + value + [UInt8(ascii: "\n")]
            var length = rest.count
            while length != rest.count + String(length).utf8.count { length = rest.count + String(length).utf8.count }
            records += Array(String(length).utf8) + rest
        }
        if entry.path.count > 100 { add(Array("path".utf8), entry.path) }
        if entry.target.count > 100 { add(Array("linkpath".utf8), entry.target) }
        if entry.size > greatest { add(Array("size".utf8), Array(String(entry.size).utf8)) }
        let (seconds, nanoseconds) = entry.modified.parts
        if nanoseconds != 0 || seconds < 0 || seconds > greatest {
            add(Array("mtime".utf8), Array(decimal(entry.modified).utf8))
        }
        for (name, value) in entry.extended.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            add(Array("SCHILY.xattr.".utf8) + escaped(name), value)
        }
        return records
    }

    /// As GNU tar writes names of attributes, in which `=` would end the key.
    private static func escaped(_ name: [UInt8]) -> [UInt8] {
        name.flatMap { byte in
            switch byte {
            case UInt8(ascii: "%"): Array("%25".utf8)
            case UInt8(ascii: "="): Array("%3D".utf8)
            default: [byte]
            }
        }
    }

    /// Seconds.
    private static func decimal(_ time: Timestamp) -> String {
        let (seconds, rest) = time.nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
        let digits = String(rest)
        let sign = time.nanoseconds < 0 ? "-" : ""
        return "\(sign)\(seconds)." + String(repeating: "0", count: 9 - digits.count) + digits
    }

    private static func header(of entry: Entry) -> [UInt8] {
        var header = [UInt8](repeating: 0, count: block)
        func put(_ bytes: some Collection<UInt8>, at offset: Int, room: Int) {
            for (index, byte) in bytes.prefix(room).enumerated() { header[offset + index] = byte }
        }
        func put(_ number: Int64, at offset: Int, digits: Int) {
            let text = String(min(max(0, number), greatest), radix: 8)
            put((String(repeating: "0", count: max(0, digits - text.utf8.count)) + text).utf8, at: offset, room: digits)
        }
        put(entry.path, at: 0, room: 100)
        put(Int64(entry.mode), at: 100, digits: 7)
        put(0, at: 108, digits: 7)
        put(0, at: 116, digits: 7)
        put(entry.size > greatest ? 0 : entry.size, at: 124, digits: 11)
        put(entry.modified.parts.seconds, at: 136, digits: 11)
        header[156] = entry.kind.rawValue
        put(entry.target, at: 157, room: 100)
        put("ustar\u{0}00".utf8, at: 257, room: 8)
        put(0, at: 329, digits: 7)
        put(0, at: 337, digits: 7)
        // The sum of all bytes, with blanks in the place of the sum.
        let sum = header.reduce(Int64(8 * 0x20)) { $0 + Int64($1) }
        put(sum, at: 148, digits: 6)
        header[155] = 0x20
        return header
    }
}
