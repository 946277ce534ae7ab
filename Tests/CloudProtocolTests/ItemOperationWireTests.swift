import CloudProtocol
import FoundationEssentials
import Testing
import UbiquityModel

@Suite struct ItemOperationWireTests {
    static func actions() throws -> [ItemOperation.Action] {
        let place = try Samples.place()
        let content = try Samples.file()
        let attributes = Samples.attributes()
        let manifest = try Samples.manifest()
        let now = Timestamp(nanoseconds: 99)
        return [
            .create(place: place, content: content, attributes: attributes, manifest: manifest, edited: now),
            .create(place: place, content: .folder, attributes: attributes, manifest: Manifest(), edited: now),
            .create(
                place: place,
                content: .symlink(target: [97]),
                attributes: attributes,
                manifest: Manifest(),
                edited: now
            ),
            .announce(
                place: place,
                content: FileContent(revision: Samples.revision, content: nil, size: 5),
                attributes: attributes
            ),
            .edit(base: Samples.revision, content: content, attributes: attributes, manifest: manifest, edited: now),
            .edit(
                base: nil,
                content: .symlink(target: [97]),
                attributes: attributes,
                manifest: Manifest(),
                edited: now
            ),
            .move(to: place),
            .setAttributes(modified: now, mode: 0o600, extended: [:]),
            .setAttributes(modified: nil, mode: nil, extended: nil),
            .setAttributes(modified: Timestamp(nanoseconds: 0), mode: 0, extended: attributes.extended),
            .delete(base: nil),
            .delete(base: Samples.revision),
            .delete(base: Samples.revision, conflicts: [RevisionID(high: 3, low: 4), Samples.revision]),
            .revive(place: place, attributes: attributes),
            .resolve(versions: [Samples.revision], winner: nil, base: nil),
            .discard(versions: [Samples.revision, RevisionID(high: 9, low: 9)]),
            .resolve(versions: [], winner: Samples.revision, base: RevisionID(high: 9, low: 9)),
            .restore(version: Samples.revision, as: RevisionID(high: 8, low: 8), base: nil, edited: now),
            .restore(
                version: Samples.revision,
                as: RevisionID(high: 8, low: 8),
                base: RevisionID(high: 9, low: 9),
                edited: now
            ),
            .undelete,
        ]
    }

    @Test(arguments: try actions())
    func `an operation comes back as it went`(action: ItemOperation.Action) throws {
        let operation = ItemOperation(id: OperationID(high: 1, low: 2), item: Samples.item, action: action)
        #expect(try ItemOperation(wire: WireOperation(body: WireOperation(operation).body)) == operation)
    }

    @Test func `an announcement never carries the content's id`() throws {
        let content = FileContent(revision: Samples.revision, content: try Samples.digest(1), size: 5)
        let action = ItemOperation.Action.announce(
            place: try Samples.place(),
            content: content,
            attributes: Samples.attributes()
        )
        let wire = WireOperation(ItemOperation(id: OperationID(high: 1, low: 2), item: Samples.item, action: action))
        #expect(wire.announce.content.content.isEmpty)
    }

    static let spoiled: [Spoiled<WireOperation>] = [
        Spoiled("no id", .missing("the operation's id")) { $0.id = Data() },
        Spoiled("no item", .missing("the item's id")) { $0.item = Data() },
        Spoiled("the root", .contradiction("the root folder is never changed")) { $0.item = Data(count: 16) },
        Spoiled("nothing to do", .missing("what the operation does")) { $0.action = nil },
        Spoiled("a bad name", .badName(.dots)) { $0.create.place.name = Data("..".utf8) },
        Spoiled("into itself", .contradiction("an item would lie in itself")) { $0.create.place.parent = $0.item },
        Spoiled("no content", .missing("the content's id")) { $0.create.content.content = Data() },
        Spoiled("a torn manifest", .undecodable("a manifest")) { $0.create.manifest.removeLast() },
        Spoiled("too little", .contradiction("the chunks do not add up to the file's size")) {
            $0.create.manifest = Data()
        },
        Spoiled("a folder's manifest", .contradiction("a manifest for an item that is no file")) {
            $0.create.content.kind = .folder
        },
        Spoiled("a folder's edit", .contradiction("a folder has no content to edit")) {
            $0.edit = WireEdit()
            $0.edit.content.kind = .folder
        },
        Spoiled("an announced folder", .contradiction("only files whose content comes later are announced")) {
            $0.announce = WireAnnounce()
            $0.announce.content.kind = .folder
        },
        Spoiled("a short base", .wrongLength("the base", bytes: 3)) {
            $0.delete = WireDelete()
            $0.delete.base = Data(count: 3)
        },
        Spoiled("a mode of 16 bits", .outOfRange("the permission bits", value: 0o100644)) {
            $0.setAttributes = WireSetAttributes()
            $0.setAttributes.mode = 0o100644
        },
        Spoiled("attributes for nothing", .contradiction("extended attributes that replace nothing")) {
            $0.setAttributes = WireSetAttributes()
            $0.setAttributes.extended = [WireExtendedAttribute()]
        },
        Spoiled("no new revision", .missing("the new revision")) {
            $0.restore = WireRestore()
            $0.restore.version = Data(count: 16)
        },
    ]

    @Test(arguments: spoiled)
    func `what cannot be is refused`(spoiled: Spoiled<WireOperation>) throws {
        let action = ItemOperation.Action.create(
            place: try Samples.place(),
            content: try Samples.file(),
            attributes: Samples.attributes(),
            manifest: try Samples.manifest(),
            edited: Timestamp(nanoseconds: 1)
        )
        var wire = WireOperation(ItemOperation(id: OperationID(high: 1, low: 2), item: Samples.item, action: action))
        spoiled.spoil(&wire)
        #expect(throws: spoiled.error) { try ItemOperation(wire: wire) }
    }
}

@Suite struct AnswerWireTests {
    static func outcomes() throws -> [OperationOutcome] {
        [
            .committed(try Samples.remote()), .missingChunks([try Samples.digest(1), try Samples.digest(2)]),
            .nameTaken(by: Samples.item), .parentMissing, .notEmpty, .cycle, .noSuchItem,
            .superseded(try Samples.remote()),
            .quotaExceeded, .invalid("no"), .skipped,
        ]
    }

    @Test(arguments: try outcomes())
    func `an outcome comes back as it went`(outcome: OperationOutcome) throws {
        #expect(try OperationOutcome(wire: WireOutcome(body: WireOutcome(outcome).body)) == outcome)
    }

    @Test func `an answer without an outcome is refused`() {
        #expect(throws: WireError.self) { try OperationOutcome(wire: WireOutcome()) }
    }

    @Test(arguments: [ItemVersion.Kind.current, .conflict, .saved])
    func `a version comes back as it went`(kind: ItemVersion.Kind) throws {
        let version = try Samples.version(kind)
        #expect(try ItemVersion(wire: WireVersion(body: WireVersion(version).body)) == version)
    }

    @Test func `a deleted item comes back as it went`() throws {
        let item = DeletedItem(
            item: try Samples.remote(),
            path: "a/b",
            deleted: Timestamp(nanoseconds: 4),
            device: "pc"
        )
        #expect(try DeletedItem(wire: WireDeletedItem(body: WireDeletedItem(item).body)) == item)
        #expect(throws: WireError.missing("the deleted item")) { try DeletedItem(wire: WireDeletedItem()) }
    }

    @Test func `a container comes back as it went, and is checked`() throws {
        let container = ContainerInfo(
            id: .documents,
            key: [UInt8](repeating: 3, count: 32),
            layout: .app,
            isCaseInsensitive: true,
            isReadOnly: true,
            packages: PackageDeclaration(added: ["foo", "bar"], removed: ["rtfd"])
        )
        var wire = WireContainerInfo(container)
        #expect(try ContainerInfo(wire: wire) == container)
        wire.key.removeLast()
        #expect(throws: WireError.wrongLength("a container's key", bytes: 31)) { try ContainerInfo(wire: wire) }
        wire = WireContainerInfo(container)
        wire.id = "../x"
        #expect(throws: WireError.self) { try ContainerInfo(wire: wire) }
        wire = WireContainerInfo(container)
        wire.layout = "spiral"
        #expect(throws: WireError.self) { try ContainerInfo(wire: wire) }
    }

    @Test func `a container is of use without what a newer server takes for extensions`() throws {
        let container = ContainerInfo(
            id: .documents,
            key: [UInt8](repeating: 3, count: 32),
            layout: .drive,
            isCaseInsensitive: false,
            isReadOnly: false
        )
        var wire = WireContainerInfo(container)
        #expect(try ContainerInfo(wire: wire) == container)
        wire.packages.added = ["foo", "tar.gz", "Upper", "", "bar"]
        wire.packages.removed = ["a/b", "bar"]
        let expected = PackageDeclaration(added: ["foo"], removed: ["bar"])
        #expect(try ContainerInfo(wire: wire).packages == expected)
        wire.packages.added = (0..<2_000).map { "e\($0)" }
        #expect(try ContainerInfo(wire: wire).packages.count <= PackageDeclaration.limit)
    }

    @Test func `what a device declares is checked`() throws {
        let change = PackageDeclaration(added: ["foo"], removed: ["rtfd", "bar"])
        #expect(try PackageDeclaration(wire: WirePackageDeclaration(change)) == change)
        for text in ["", "a.b", "Upper", "a/b", "a\nb", ".foo", String(repeating: "x", count: 65)] {
            var wire = WirePackageDeclaration(change)
            wire.removed.append(text)
            #expect(throws: WireError.unknown("an extension of packages", value: text)) {
                try PackageDeclaration(wire: wire)
            }
        }
        var wire = WirePackageDeclaration(change)
        wire.removed.append("foo")
        #expect(throws: WireError.self) { try PackageDeclaration(wire: wire) }
        wire.removed = (0..<1_000).map { "e\($0)" }
        #expect(throws: WireError.tooMany("extensions of packages", 1_001, limit: 1_000)) {
            try PackageDeclaration(wire: wire)
        }
    }

    @Test(arguments: [[UInt8](), [UInt8](repeating: 1, count: 32)])
    func `a position comes back as it went`(hash: [UInt8]) throws {
        let position = LogPosition(counter: 7, hash: hash)
        #expect(try LogPosition(wire: WirePosition(position)) == position)
    }

    @Test func `a position's hash is whole or absent`() {
        #expect(throws: WireError.self) { try LogPosition(counter: 1, wireHash: [1]) }
    }

    @Test func `missing chunks are named by their place in the question`() throws {
        let asked: [ChunkID] = [try Samples.digest(1), try Samples.digest(2)]
        var response = WireHaveResponse()
        response.missing = [1]
        #expect(try response.missing(of: asked) == [asked[1]])
        response.missing = [2]
        #expect(throws: WireError.self) { try response.missing(of: asked) }
    }

    @Test func `an unknown content has no manifest`() throws {
        let known = try #require(
            try WireManifestAnswer(content: Samples.digest(1), manifest: Samples.manifest()).decoded()
        )
        #expect(known.manifest == (try Samples.manifest()))
        #expect(try WireManifestAnswer(content: Samples.digest(1), manifest: nil).decoded() == nil)
    }

    @Test(arguments: [
        (UInt32(0), false, 1), (300_000, false, 300_000), (5, false, 4), (5, true, 6), (5, true, 0),
    ])
    func `a frame whose lengths cannot be is refused`(length: UInt32, isCompressed: Bool, bytes: Int) throws {
        let data = [UInt8](repeating: 1, count: bytes)[...]
        let wire = WireChunkFrame(chunk: try Samples.digest(1), length: length, isCompressed: isCompressed, data: data)
        let error = try #require(throws: WireError.self) { try wire.decoded() }
        let body = try wire.body
        #expect(throws: error) { try WireChunkFrame.parts(of: body) }
    }

    @Test(arguments: [(UInt32(1), false, 1), (127, false, 127), (128, true, 128), (262_144, false, 262_144)])
    func `a frame has the bytes of generated code, and is read from them`(
        length: UInt32,
        isCompressed: Bool,
        bytes: Int
    ) throws {
        let data = [UInt8](repeating: 7, count: bytes)[...]
        let chunk: ChunkID = try Samples.digest(200)
        let wire = WireChunkFrame(chunk: chunk, length: length, isCompressed: isCompressed, data: data)
        let body = try wire.body
        let head = WireChunkFrame.head(chunk: chunk, length: length, isCompressed: isCompressed, dataCount: bytes)
        #expect(head + data == LengthPrefix.encode(body))
        // A field of a newer version goes the general way.
        for body in [body, body + [0xA0, 0x06, 0x01]] {
            #expect(try WireChunkFrame.parts(of: body) == (chunk, length, isCompressed, data))
        }
        for cut in [0, 1, 34, body.count - 1] {
            #expect(throws: WireError.self) { try WireChunkFrame.parts(of: Array(body.prefix(cut))) }
        }
    }

    @Test func `random bytes are an error, never a crash`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...200, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            if let item = try? WireItem(body: bytes) { _ = try? RemoteItem(wire: item) }
            if let operation = try? WireOperation(body: bytes) { _ = try? ItemOperation(wire: operation) }
            if let outcome = try? WireOutcome(body: bytes) { _ = try? OperationOutcome(wire: outcome) }
        }
    }
}
