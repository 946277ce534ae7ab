import TestSupport
import UbiquityModel

/// Values of the model that a device or a server could send, by seed: what the encoders are given.
struct Arbitrary {
    var generator: SeededGenerator

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<max(1, bound), using: &generator) }
    mutating func chance(_ one: Int) -> Bool { below(one) == 0 }
    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }
    mutating func bytes(_ count: Int) -> [UInt8] { generator.bytes(count) }

    /// Few of them, and all of them at times: what overflows is at the ends.
    mutating func integer() -> Int64 {
        switch below(6) {
        case 0: pick([.min, .max, .min + 1, .max - 1, 0, 1, -1, 1 << 53, 1 << 62, -1_000_000_000])
        case 1: Int64(bitPattern: generator.next())
        default: Int64(below(1 << 20))
        }
    }

    mutating func size() -> Int64 { integer() & .max }
    mutating func time() -> Timestamp { Timestamp(nanoseconds: integer()) }
    mutating func identifier<Kind>() -> Identifier<Kind> {
        chance(3) ? Identifier(high: 0, low: UInt64(1 + below(6))) : Identifier(using: &generator)
    }

    mutating func digest<Kind>(_: Kind.Type) throws -> Digest<Kind> {
        guard let digest = Digest<Kind>(bytes: bytes(32)) else { throw FuzzFailure("32 bytes are no digest") }
        return digest
    }

    mutating func content() throws -> ContentID { try digest(ContentKindTag.self) }
    mutating func chunk() throws -> ChunkID { try digest(ChunkKindTag.self) }

    mutating func name() throws -> Name {
        var name = chance(8) ? bytes(255) : Array(pick(["a", "report.txt", "naïve", ".x", " ", "…", "x.tar.gz"]).utf8)
        for index in name.indices where [0, UInt8(ascii: "/")].contains(name[index]) { name[index] = 0x80 }
        return try Name(bytes: name)
    }

    mutating func text() -> String { pick(["", "laptop", "Büro \u{1F5C4}", "a/b", "x\u{0}y", "line\nfeed"]) }

    mutating func manifest(upTo count: Int = 40) throws -> Manifest {
        var entries = [Manifest.Entry]()
        for _ in 0..<below(count) {
            entries.append(.init(chunk: try chunk(), length: UInt32(1 + below(Manifest.maximumChunkSize))))
        }
        return Manifest(entries: entries)
    }

    mutating func attributes() -> ItemAttributes {
        var extended = [[UInt8]: [UInt8]]()
        if chance(3) {
            for _ in 0..<below(4) { extended[Array("user.\(below(9))".utf8)] = bytes(below(20)) }
        }
        return ItemAttributes(modified: time(), mode: UInt16(below(0o1000)), extended: extended)
    }

    mutating func file(of manifest: Manifest? = nil) throws -> FileContent {
        let content = try manifest != nil || !chance(4) ? content() : nil
        return FileContent(revision: identifier(), content: content, size: manifest?.size ?? size())
    }

    mutating func itemContent(of manifest: Manifest? = nil) throws -> ItemContent {
        switch manifest == nil ? below(4) : 3 {
        case 0: .folder
        case 1: .symlink(target: bytes(1 + below(20)).map { $0 | 1 })
        default: .file(try file(of: manifest))
        }
    }

    mutating func place() throws -> Place {
        Place(parent: chance(2) ? .root : ItemID(high: 1, low: generator.next()), name: try name())
    }

    mutating func version() throws -> ItemVersion {
        ItemVersion(
            revision: identifier(),
            kind: pick([.current, .conflict, .saved]),
            content: try content(),
            size: size(),
            edited: time(),
            modified: time(),
            device: text(),
            name: try name()
        )
    }

    mutating func item(of manifest: Manifest? = nil) throws -> RemoteItem {
        var conflicts = [ItemVersion]()
        if chance(4) { for _ in 0..<below(3) { conflicts.append(try version()) } }
        return RemoteItem(
            id: ItemID(high: 2, low: generator.next()),
            place: try place(),
            content: try itemContent(of: manifest),
            attributes: attributes(),
            position: UInt64(bitPattern: integer()),
            isDeleted: chance(4),
            author: text(),
            edited: time(),
            conflicts: conflicts
        )
    }

    mutating func items() throws -> [(item: RemoteItem, manifest: Manifest?)] {
        var items = [(item: RemoteItem, manifest: Manifest?)]()
        for _ in 0..<below(5) {
            let manifest = try chance(2) ? manifest(upTo: 4) : nil
            items.append((try item(of: manifest), manifest))
        }
        return items
    }

    mutating func operation() throws -> ItemOperation {
        let manifest = try manifest(upTo: 4)
        let base: RevisionID? = chance(2) ? identifier() : nil
        let action: ItemOperation.Action =
            switch below(11) {
            case 0:
                .create(
                    place: try place(),
                    content: try itemContent(of: manifest),
                    attributes: attributes(),
                    manifest: manifest,
                    edited: time()
                )
            case 1:
                .announce(
                    place: try place(),
                    content: FileContent(revision: identifier(), content: nil, size: size()),
                    attributes: attributes()
                )
            case 2:
                .edit(
                    base: base,
                    content: try itemContent(of: manifest),
                    attributes: attributes(),
                    manifest: manifest,
                    edited: time()
                )
            case 3: .move(to: try place())
            case 4:
                .setAttributes(
                    modified: chance(2) ? time() : nil,
                    mode: chance(2) ? UInt16(below(0o1000)) : nil,
                    extended: chance(2) ? attributes().extended : nil
                )
            case 5: .delete(base: base, conflicts: (0..<below(4)).map { _ in identifier() })
            case 6: .revive(place: try place(), attributes: attributes())
            case 7: .resolve(versions: (0..<below(4)).map { _ in identifier() }, winner: base, base: base)
            case 8: .restore(version: identifier(), as: identifier(), base: base, edited: time())
            case 9: .discard(versions: (0..<below(4)).map { _ in identifier() })
            default: .undelete
            }
        let knowsTarget =
            switch action {
            case .edit, .delete: chance(3)
            default: false
            }
        return ItemOperation(
            id: identifier(),
            item: ItemID(high: 2, low: UInt64(1 + below(4))),
            action: action,
            isUnwitnessed: chance(4),
            formerAttributes: chance(4) ? attributes() : nil,
            formerTarget: knowsTarget ? [UInt8(1 + below(255))] : nil
        )
    }

    mutating func outcome() throws -> OperationOutcome {
        switch below(11) {
        case 0: .committed(try item())
        case 1: .missingChunks([try chunk(), try chunk()])
        case 2: .nameTaken(by: identifier())
        case 3: .parentMissing
        case 4: .notEmpty
        case 5: .cycle
        case 6: .noSuchItem
        case 7: .superseded(try item())
        case 8: .quotaExceeded
        case 9: .invalid(text())
        default: .skipped
        }
    }

    mutating func packages() -> PackageDeclaration {
        let words = ["foo", "b-1", "rtfd", "\u{E9}t\u{E9}", String(repeating: "x", count: 64)]
        return PackageDeclaration(
            added: Set(words.filter { _ in chance(3) }),
            removed: Set(words.filter { _ in chance(4) })
        )
    }

    mutating func position() -> LogPosition {
        LogPosition(counter: UInt64(bitPattern: integer()), hash: chance(3) ? [] : bytes(32))
    }
}

extension Manifest {
    /// The base of differences.
    static let short = Manifest(
        entries: (1...9).compactMap { number in
            ChunkID(bytes: [UInt8](repeating: number, count: 32)).map { .init(chunk: $0, length: 1) }
        }
    )
}
