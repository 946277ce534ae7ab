import CatalogModel
import Reconciliation
import TestSupport
import UbiquityModel

/// Makes histories of a container. The same seed makes the same one, whatever the catalogues answer.
///
/// Names, texts and times come from few, so that they clash; items and revisions are mostly those that the history had before.
struct CatalogStepGenerator {
    /// The devices of a history when it begins: the second may only read.
    static let devices: [UInt8] = [1, 2, 3]
    static let reader: UInt8 = 2

    private var random: SeededGenerator
    /// Seconds.
    private var now: Int64 = 1_000
    private var nextID: UInt64 = 1
    private var items: [ItemID] = []
    private var folders: [ItemID] = [.root]
    private var revisions: [ItemID: [RevisionID]] = [:]
    private var announced: [(item: ItemID, revision: RevisionID)] = []
    private var past: [ItemOperation] = []
    private var devices = Self.devices
    private let namespace: UInt64

    private static let names = ["a", "A", "b", "B", "b 2", "c.txt", "c 2.txt", "d", "e"]
    /// The same text in other chunks is a content that contradicts itself.
    private static let texts: [[String]] = [
        [], ["x"], ["y"], ["x", "y"], ["xy"], ["z", "x", "z"], ["w"], ["long", "er"],
    ]

    /// The texts, and what they are made of, by what they are called in the cloud.
    private static let chunks = Dictionary(
        texts.flatMap { $0 + [$0.joined()] }.map { ($0, chunk($0)) },
        uniquingKeysWith: { first, _ in first }
    ).compactMapValues { $0 }
    private static let contents = Dictionary(
        texts.map { ($0.joined(), ContentID(bytes: chunk("content of " + $0.joined())?.bytes ?? [])) },
        uniquingKeysWith: { first, _ in first }
    )
    private static let lengths = Dictionary(
        chunks.map { ($1, UInt32($0.utf8.count)) },
        uniquingKeysWith: { first, _ in first }
    )

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        namespace = seed
    }

    mutating func history(_ count: Int) -> [CatalogStep] { (0..<count).map { _ in step() } }

    private mutating func step() -> CatalogStep {
        now += Int64(number(3))
        switch number(100) {
        case 0..<3: return .addChunks(records(of: text()), device: device())
        case 3..<6:
            let fresh = UInt8(10 + devices.count)
            devices.append(fresh)
            // Its own, as if it had asked before; one that somebody has; or none.
            let proposed: UInt8? = any([nil, device(), UInt8(100 + number(3))])
            if let proposed, !devices.contains(proposed) { devices.append(proposed) }
            return .openSession(
                device: device(),
                nonce: UInt8(number(4)),
                freshNonce: UInt8(number(4)),
                fresh: fresh,
                proposed: proposed
            )
        case 7..<10: return .keepHouse(now: time(now + any([0, 5, 90_000, 190_000])))
        case 6: return .revoke(name: any(["device 1", "device 3", "device 1 2", "nobody"]), device: device())
        case 10..<12:
            let words: [String] = ["foo", "bar", "rtfd", "\u{E9}t\u{E9}"]
            let change = PackageDeclaration(
                added: isTrue(1, of: 2) ? Set([any(words), any(words)]) : [],
                removed: isTrue(1, of: 2) ? [any(words)] : []
            )
            return .declarePackages(change, device: device())
        default: return commit()
        }
    }

    private mutating func commit() -> CatalogStep {
        var request = CommitRequest(
            entries: [],
            deviceClock: time(any([0, now, now, now + 7, now - 3])),
            discardsFormer: isTrue(1, of: 4),
            now: time(now),
            isQuotaExceeded: isTrue(1, of: 40)
        )
        for _ in 0...number(6) {
            if isTrue(1, of: 40) {
                request.entries.append(.refused(item: isTrue(1, of: 2) ? item() : nil, reason: "nonsense"))
                continue
            }
            let operation = isTrue(1, of: 12) && !past.isEmpty ? any(past) : self.operation()
            past.append(operation)
            request.entries.append(.operation(operation))
            if let manifest = operation.action.manifest, isTrue(5, of: 6) {
                request.chunks += records(of: manifest)
            }
        }
        return .commit(request, device: device())
    }

    // MARK: Operations

    private mutating func operation() -> ItemOperation {
        switch number(31) {
        case 0..<5: return create(newItem(), file())
        case 5..<7: return createFolder()
        case 7: return create(newItem(), link())
        case 8: return create(item(), isTrue(1, of: 4) ? link() : file())
        case 9..<11: return announce()
        case 11..<13: return createAnnounced()
        case 13..<17: return edit(item(), file())
        case 17: return edit(item(), link())
        case 18..<21: return operation(item(), .move(to: place()))
        case 21: return setAttributes()
        case 22..<25:
            let item = item()
            let known = (0..<number(4)).compactMap { _ in base(of: item) }
            var delete = operation(item, .delete(base: base(of: item), conflicts: known))
            if isTrue(2, of: 3) { delete.formerTarget = target() }
            return delete
        case 25: return operation(item(), .revive(place: place(), attributes: attributes()))
        case 26: return resolve()
        case 27..<29: return restore()
        case 29:
            let item = item()
            return operation(item, .discard(versions: (0..<number(4)).compactMap { _ in base(of: item) }))
        default: return operation(isTrue(1, of: 10) ? .root : item(), .undelete)
        }
    }

    private mutating func operation(_ item: ItemID, _ action: ItemOperation.Action) -> ItemOperation {
        ItemOperation(id: fresh(), item: item, action: action)
    }

    private mutating func create(_ id: ItemID, _ content: (ItemContent, Manifest)) -> ItemOperation {
        note(content.0.revision, of: id)
        return operation(
            id,
            .create(
                place: place(),
                content: content.0,
                attributes: attributes(),
                manifest: content.1,
                edited: edited()
            )
        )
    }

    private mutating func createFolder() -> ItemOperation {
        let id = newItem()
        defer { folders.append(id) }
        return create(id, (.folder, Manifest()))
    }

    private mutating func announce() -> ItemOperation {
        let id = isTrue(3, of: 4) ? newItem() : item()
        let revision: RevisionID = fresh()
        announced.append((id, revision))
        let content = FileContent(revision: revision, content: nil, size: Int64(number(100_000)))
        return operation(id, .announce(place: place(), content: content, attributes: attributes()))
    }

    private mutating func createAnnounced() -> ItemOperation {
        guard !announced.isEmpty else { return announce() }
        let (item, revision) = any(announced)
        if isTrue(1, of: 4) { return edit(item, file(revision)) }
        return create(item, file(revision))
    }

    private mutating func edit(_ item: ItemID, _ content: (ItemContent, Manifest)) -> ItemOperation {
        let base = base(of: item)
        note(content.0.revision, of: item)
        var edit = operation(
            item,
            .edit(
                base: base,
                content: content.0,
                attributes: attributes(),
                manifest: content.1,
                edited: edited()
            )
        )
        edit.isUnwitnessed = isTrue(1, of: 4)
        if isTrue(1, of: 2) { edit.formerAttributes = attributes() }
        if isTrue(2, of: 3) { edit.formerTarget = target() }
        return edit
    }

    private mutating func setAttributes() -> ItemOperation {
        operation(
            item(),
            .setAttributes(
                modified: isTrue(1, of: 2) ? edited() : nil,
                mode: isTrue(1, of: 2) ? any([0o644, 0o755]) : nil,
                extended: isTrue(1, of: 2) ? attributes().extended : nil
            )
        )
    }

    private mutating func resolve() -> ItemOperation {
        let item = item()
        let versions = (0..<number(3)).compactMap { _ in base(of: item) }
        return operation(
            item,
            .resolve(versions: versions, winner: isTrue(2, of: 3) ? base(of: item) : nil, base: base(of: item))
        )
    }

    private mutating func restore() -> ItemOperation {
        let item = item()
        guard let version = base(of: item) else { return operation(item, .undelete) }
        let new: RevisionID = fresh()
        let base = base(of: item)
        note(new, of: item)
        return operation(item, .restore(version: version, as: new, base: base, edited: edited()))
    }

    // MARK: Parts

    private mutating func newItem() -> ItemID {
        let id: ItemID = fresh()
        items.append(id)
        return id
    }

    /// One that the history had; rarely one that nobody knows.
    private mutating func item() -> ItemID {
        guard !items.isEmpty, isTrue(29, of: 30) else { return fresh() }
        // Mostly one of the last, so that things happen to it.
        return isTrue(2, of: 3) ? items[items.count - 1 - number(min(5, items.count))] : any(items)
    }

    private mutating func place() -> Place {
        var parent = ItemID.root
        switch number(10) {
        case 0..<4: break
        case 4..<9: parent = any(folders)
        default: parent = item()
        }
        // The names of this type are names.
        guard let name = try? Name(any(Self.names)) else { preconditionFailure("a letter is a name") }
        return Place(parent: parent, name: name)
    }

    /// The newest revision of the item, an older one, one of another item, or none.
    private mutating func base(of item: ItemID) -> RevisionID? {
        let known = revisions[item] ?? []
        switch number(12) {
        case 0: return nil
        case 1: return fresh()
        case 2: return revisions[self.item()]?.last
        case 3..<8: return known.last
        default: return known.isEmpty ? nil : any(known)
        }
    }

    private mutating func note(_ revision: RevisionID?, of item: ItemID) {
        if let revision { revisions[item, default: []].append(revision) }
    }

    private mutating func text() -> [String] { any(Self.texts) }

    private mutating func file(_ wanted: RevisionID? = nil) -> (ItemContent, Manifest) {
        let parts = text()
        var manifest = manifest(of: parts)
        if isTrue(1, of: 40), !manifest.entries.isEmpty { manifest.entries[0].length += 1 }
        // Rarely a revision that there is already.
        let revision = wanted ?? (isTrue(1, of: 20) ? base(of: item()) : nil) ?? fresh()
        return (
            .file(FileContent(revision: revision, content: Self.contents[parts.joined()] ?? nil, size: manifest.size)),
            manifest
        )
    }

    private mutating func link() -> (ItemContent, Manifest) {
        (.symlink(target: target()), Manifest())
    }

    private mutating func target() -> [UInt8] { Array(any(["a", "../b", "c"]).utf8) }

    private func manifest(of parts: [String]) -> Manifest {
        Manifest(
            entries: parts.compactMap { part in
                Self.chunks[part].map { .init(chunk: $0, length: UInt32(part.utf8.count)) }
            }
        )
    }

    private mutating func records(of parts: [String]) -> [ChunkRecord] { records(of: manifest(of: parts)) }

    /// With the true lengths, whatever a manifest says.
    private mutating func records(of manifest: Manifest) -> [ChunkRecord] {
        manifest.entries.map { entry in
            ChunkRecord(
                chunk: entry.chunk,
                length: Self.lengths[entry.chunk] ?? entry.length,
                isCompressed: isTrue(1, of: 2),
                pack: UInt64(number(3)),
                offset: UInt64(number(1_000)),
                recordLength: 100
            )
        }
    }

    private mutating func attributes() -> ItemAttributes {
        let extended: [[UInt8]: [UInt8]] =
            switch number(4) {
            case 0: [Array("user.a".utf8): [1], Array("user.b".utf8): []]
            case 1: [Array("user.a".utf8): [2, 3]]
            // Two of these together are more than an item can have.
            case 2 where isTrue(1, of: 20):
                [any([Array("user.b".utf8), Array("user.c".utf8)]): Array(repeating: 4, count: 40_000)]
            default: [:]
            }
        return ItemAttributes(modified: edited(), mode: any([0o644, 0o600]), extended: extended)
    }

    private mutating func edited() -> Timestamp { time(now - 4 + Int64(number(7))) }

    // MARK: Chance

    private mutating func fresh<Kind>() -> Identifier<Kind> {
        nextID += 1
        // Their order is not that of their making.
        return Identifier(high: random.next() >> 56, low: namespace << 32 | nextID)
    }

    private mutating func device() -> UInt8 {
        switch number(40) {
        case 0: 99
        case 1: Self.reader
        case 2..<6: any(devices)
        default: isTrue(1, of: 2) ? 1 : 3
        }
    }

    private mutating func number(_ limit: Int) -> Int { Int(random.next() % UInt64(limit)) }
    private mutating func isTrue(_ times: Int, of all: Int) -> Bool { number(all) < times }
    private mutating func any<Value>(_ values: [Value]) -> Value { values[number(values.count)] }
}

extension ItemOperation.Action {
    fileprivate var manifest: Manifest? {
        switch self {
        case .create(_, _, _, let manifest, _), .edit(_, _, _, let manifest, _): manifest
        case .announce, .move, .setAttributes, .delete, .revive, .resolve, .restore, .undelete, .discard: nil
        }
    }
}
