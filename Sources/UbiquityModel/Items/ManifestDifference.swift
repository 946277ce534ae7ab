/// How one manifest differs from another: runs of chunks that both have, and what is new between them. An edit of a large file changes
/// little of a long manifest.
package struct ManifestDifference: Hashable, Sendable {
    package enum Part: Hashable, Sendable {
        /// These entries of the base.
        case copied(Range<Int>)
        case fresh([Manifest.Entry])
    }

    package private(set) var parts: [Part]

    /// The first byte of what is encoded, another one for another form.
    private static let form: UInt8 = 1
    private static let copiedKind: UInt8 = 1
    private static let freshKind: UInt8 = 2
    private static let entryBytes = 36

    /// The difference that makes `manifest` of `base`.
    package init(from base: Manifest, to manifest: Manifest) {
        var places: [ChunkID: Int] = [:]
        places.reserveCapacity(base.entries.count)
        for (index, entry) in base.entries.enumerated() where places[entry.chunk] == nil { places[entry.chunk] = index }
        parts = []
        var copied = 0..<0
        var fresh: [Manifest.Entry] = []
        for entry in manifest.entries {
            if !copied.isEmpty, copied.upperBound < base.entries.count, base.entries[copied.upperBound] == entry {
                copied = copied.lowerBound..<copied.upperBound + 1
                continue
            }
            if !copied.isEmpty { parts.append(.copied(copied)) }
            copied = 0..<0
            if let place = places[entry.chunk], base.entries[place] == entry {
                if !fresh.isEmpty { parts.append(.fresh(fresh)) }
                fresh = []
                copied = place..<place + 1
            } else {
                fresh.append(entry)
            }
        }
        if !copied.isEmpty { parts.append(.copied(copied)) }
        if !fresh.isEmpty { parts.append(.fresh(fresh)) }
    }

    /// How many entries the manifest has that this makes.
    package var count: Int {
        parts.reduce(0) { count, part in
            switch part {
            case .copied(let range): count + range.count
            case .fresh(let entries): count + entries.count
            }
        }
    }

    /// The manifest that this makes of `base`.
    /// - Parameter limit: How many entries it may have: a short difference can make a long one.
    /// - Returns: `nil` if it would have more, or if the difference is one to another base.
    package func applied(to base: Manifest, limit: Int) -> Manifest? {
        var left = limit
        for part in parts {
            switch part {
            case .copied(let range):
                guard range.upperBound <= base.entries.count else { return nil }
                left -= range.count
            case .fresh(let entries): left -= entries.count
            }
            guard left >= 0 else { return nil }
        }
        var result = Manifest()
        result.entries.reserveCapacity(limit - left)
        for part in parts {
            switch part {
            case .copied(let range): result.entries += base.entries[range]
            case .fresh(let entries): result.entries += entries
            }
        }
        return result
    }

    // MARK: As bytes

    /// The form, then for each part its kind and two big-endian numbers of 32 bits, or one and so many entries as manifests have them.
    package var encoded: [UInt8] {
        var bytes = [Self.form]
        func append(_ number: Int) { withUnsafeBytes(of: UInt32(number).bigEndian) { bytes.append(contentsOf: $0) } }
        for part in parts {
            switch part {
            case .copied(let range):
                bytes.append(Self.copiedKind)
                append(range.lowerBound)
                append(range.count)
            case .fresh(let entries):
                bytes.append(Self.freshKind)
                append(entries.count)
                Manifest(entries: entries).appendEncoded(to: &bytes)
            }
        }
        return bytes
    }

    /// `nil` for what is no difference, or one of a form that is not known here.
    package init?(encoded: some RandomAccessCollection<UInt8>) {
        var rest = Array(encoded)[...]
        guard rest.popFirst() == Self.form else { return nil }
        parts = []
        while let kind = rest.popFirst() {
            switch kind {
            case Self.copiedKind:
                guard let start = Self.number(&rest), let count = Self.number(&rest), count > 0 else { return nil }
                parts.append(.copied(start..<start + count))
            case Self.freshKind:
                guard let count = Self.number(&rest), count > 0, count <= rest.count / Self.entryBytes,
                    let entries = Manifest(encoded: rest.prefix(count * Self.entryBytes))?.entries
                else { return nil }
                rest = rest.dropFirst(count * Self.entryBytes)
                parts.append(.fresh(entries))
            default: return nil
            }
        }
    }

    private static func number(_ rest: inout ArraySlice<UInt8>) -> Int? {
        guard rest.count >= 4 else { return nil }
        let number = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(4)
        return number
    }
}
