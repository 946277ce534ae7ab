import CloudProtocol
import FoundationEssentials
import TestSupport
import Testing
import UbiquityModel

/// Operations are written and read without generated code where that is possible: the bytes, and what comes of them, must be the same.
@Suite struct CommitWriterTests {
    /// Mostly creations and edits, with the values at which encodings change; some are not plain.
    private static func operation(_ generator: inout some RandomNumberGenerator) throws -> ItemOperation {
        func pick<Element>(_ elements: [Element]) -> Element {
            // None of the lists is empty.
            elements.randomElement(using: &generator) ?? elements[0]
        }
        // Around 450 entries, the lengths of what they are in get a third byte.
        let entry = Manifest.Entry(chunk: try Samples.digest(1), length: pick([1, 127, 128, 262_144]))
        let manifest = Manifest(entries: Array(repeating: entry, count: pick([0, 1, 1, 1, 2, 3, 33, 440, 455, 460])))
        let file = FileContent(
            revision: RevisionID(using: &generator),
            content: try Samples.digest(pick([0, 9, 255])),
            size: manifest.size,
            isPackage: pick([false, false, true])
        )
        var attributes = ItemAttributes(
            modified: Timestamp(nanoseconds: pick([0, 1, -1, .max, .min])),
            mode: pick([0, 0o644, 0o777])
        )
        let former = pick([nil, ItemAttributes(modified: Timestamp(nanoseconds: 0), mode: 0), attributes])
        if pick([true, false, false, false]) { attributes.extended = [Array("user.note".utf8): [1, 2, 3]] }
        let edited = Timestamp(nanoseconds: pick([0, 5, -7]))
        let place = Place(
            parent: pick([.root, ItemID(using: &generator)]),
            name: try Name(bytes: [UInt8](repeating: 0xF0, count: pick([1, 20, 108, 109, 127, 128, 255])))
        )
        let action: ItemOperation.Action
        switch pick([0, 0, 0, 1, 2, 2, 2, 3]) {
        case 0:
            action = .create(
                place: place,
                content: .file(file),
                attributes: attributes,
                manifest: manifest,
                edited: edited
            )
        case 1:
            action = .create(
                place: place,
                content: .folder,
                attributes: attributes,
                manifest: Manifest(),
                edited: edited
            )
        case 2:
            action = .edit(
                base: pick([nil, RevisionID(using: &generator)]),
                content: .file(file),
                attributes: attributes,
                manifest: manifest,
                edited: edited
            )
        default: action = pick(try ItemOperationWireTests.actions())
        }
        var operation = ItemOperation(
            id: OperationID(using: &generator),
            item: ItemID(using: &generator),
            action: action,
            isUnwitnessed: pick([true, false]),
            formerAttributes: former
        )
        switch action {
        case .edit, .delete: operation.formerTarget = pick([nil, nil, [97]])
        default: break
        }
        return operation
    }

    private static func frame(_ generator: inout some RandomNumberGenerator) throws -> WireChunkFrame.Parts {
        let length = [1, 127, 128, 4096, 40_000].randomElement(using: &generator) ?? 1
        let isCompressed = Bool.random(using: &generator)
        // A slice that does not begin at the beginning.
        let data = [UInt8](repeating: 7, count: (isCompressed ? (length + 1) / 2 : length) + 3)[3...]
        return (try Samples.digest(UInt8.random(in: 0...255, using: &generator)), UInt32(length), isCompressed, data)
    }

    @Test(arguments: 0..<64 as Range<UInt64>)
    func `a commit has the bytes of generated code, and is read from them`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let operations = try (0..<32).map { _ in try Self.operation(&generator) }
        let frames = try (0..<8).map { _ in try Self.frame(&generator) }
        var request = WireCommitRequest()
        request.format = FormatVersion.cloudProtocol
        let clocks: [Int64] = [0, 5, .min]
        request.deviceClock = clocks.randomElement(using: &generator) ?? 0
        request.discardsFormer = Bool.random(using: &generator)
        let nonce = [UInt8](repeating: 7, count: Int.random(in: 0...1, using: &generator) * 16)
        request.nonce = .init(nonce)
        var writer = CommitWriter(
            deviceClock: Timestamp(nanoseconds: request.deviceClock),
            discardsFormer: request.discardsFormer,
            nonce: nonce,
            capacity: 0
        )
        for frame in frames {
            writer.append(chunk: frame)
            request.chunks.append(
                WireChunkFrame(
                    chunk: frame.chunk,
                    length: frame.length,
                    isCompressed: frame.isCompressed,
                    data: frame.data
                )
            )
        }
        for operation in operations {
            try writer.append(operation)
            request.operations.append(WireOperation(operation))
            var alone = WireCommitRequest()
            alone.operations = [WireOperation(operation)]
            #expect(try CommitWriter.encoded(operation) == alone.body)
        }
        let bytes = writer.finish()
        let expected = try request.body
        #expect(bytes == expected)
        let body = try CommitBody(body: bytes)
        let entries = operations.map { CommitBody.Entry.operation($0) }
        #expect(body.entries == entries)
        #expect(body.chunks.count == frames.count)
        for (read, written) in zip(body.chunks, frames) {
            let isSame = read == written
            #expect(isSame)
        }
        #expect(body.deviceClock == Timestamp(nanoseconds: request.deviceClock))
        #expect(body.discardsFormer == request.discardsFormer)
    }

    @Test func `operations of every form stand side by side`() throws {
        let actions = try ItemOperationWireTests.actions()
        var writer = CommitWriter(
            deviceClock: Timestamp(nanoseconds: 1),
            discardsFormer: false,
            nonce: [],
            capacity: 10
        )
        var request = WireCommitRequest()
        request.format = FormatVersion.cloudProtocol
        request.deviceClock = 1
        for (number, action) in actions.enumerated() {
            let operation = ItemOperation(
                id: OperationID(high: 1, low: UInt64(number)),
                item: Samples.item,
                action: action
            )
            let wire = WireOperation(operation)
            request.operations.append(wire)
            switch number % 3 {
            case 0: try writer.append(operation)
            case 1: try writer.append(wire)
            default: writer.append(encoded: try CommitWriter.encoded(operation))
            }
        }
        let expected = try request.body
        #expect(writer.count == expected.count)
        let bytes = writer.finish()
        #expect(bytes == expected)
    }

    // MARK: What is not as expected

    private static func plain() throws -> ItemOperation {
        ItemOperation(
            id: OperationID(high: 1, low: 2),
            item: Samples.item,
            action: .create(
                place: try Samples.place(),
                content: try Samples.file(),
                attributes: ItemAttributes(modified: Timestamp(nanoseconds: -5), mode: 0o640),
                manifest: try Samples.manifest(),
                edited: Timestamp(nanoseconds: 1)
            )
        )
    }

    /// Bytes with their tag, which has one byte, and their length.
    private static func field(_ tag: UInt8, _ parts: [UInt8]...) -> [UInt8] {
        let bytes = parts.flatMap { $0 }
        var length = bytes.count
        var result = [tag]
        while length >= 0x80 {
            result.append(UInt8(length & 0x7F) | 0x80)
            length >>= 7
        }
        result.append(UInt8(length))
        result += bytes
        return result
    }

    /// What is read of an operation's bytes is what generated code reads.
    private func agree(_ bytes: [UInt8], _ comment: Comment? = nil) throws {
        let commit = Self.field(0x22, bytes)
        guard let wire = try? WireOperation(body: bytes) else {
            #expect(throws: WireError.self, comment) { try CommitBody(body: commit) }
            return
        }
        let entry = try #require(try CommitBody(body: commit).entries.first, comment)
        if wire.edit.manifestBase.isEmpty {
            let expected = said(wire)
            #expect(entry == expected, comment)
        } else if case .operation = entry {
            Issue.record("a manifest that only its base makes complete: \(bytes)")
        }
    }

    private func said(_ wire: WireOperation) -> CommitBody.Entry {
        do throws(WireError) { return .operation(try ItemOperation(wire: wire)) } catch {
            return .refused(item: ItemID(bytes: wire.item), reason: error)
        }
    }

    @Test(arguments: ItemOperationWireTests.spoiled)
    func `what cannot be is refused for the reason that generated code has`(spoiled: Spoiled<WireOperation>) throws {
        var wire = WireOperation(try Self.plain())
        spoiled.spoil(&wire)
        let entries = try CommitBody(body: Self.field(0x22, try wire.body)).entries
        #expect(entries == [.refused(item: ItemID(bytes: wire.item), reason: spoiled.error)])
    }

    /// Beside what a plain operation has.
    static let additions: [(String, [UInt8])] = [
        ("an unknown field", [0xA0, 0x06, 0x01]),
        ("an unknown group", [0xA3, 0x06, 0xA4, 0x06]),
        ("an end without a beginning", [0xA4, 0x06]),
        ("no number", [0x02, 0x00]),
        ("no kind", [0x0E, 0x00]),
        ("a short id", [0x0A, 0x01, 0x01]),
        ("no id", [0x0A, 0x00]),
        ("a short item", [0x12, 0x01, 0x01]),
        ("an id as a number", [0x08, 0x01]),
        ("the same action without anything", [0x1A, 0x00]),
        ("another time", [0x1A, 0x09, 0x29, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("another manifest", [0x1A, 0x02, 0x22, 0x00]),
        ("another action", [0x2A, 0x00]),
        ("an undelete", [0x62, 0x00]),
        ("unwitnessed", [0x70, 0x01]),
        ("not unwitnessed", [0x70, 0x00]),
        ("unwitnessed by another number", [0x70, 0x80, 0x80, 0x01]),
        ("unwitnessed, and not", [0x70, 0x01, 0x70, 0x00]),
        ("unwitnessed as bytes", [0x72, 0x01, 0x01]),
        ("eleven bytes", [0x70, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]),
        ("70 bits", [0x70, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
        ("former attributes", [0x7A, 0x02, 0x10, 0x01]),
        ("no former attributes", [0x7A, 0x00]),
        ("former attributes in two parts", [0x7A, 0x02, 0x10, 0x01, 0x7A, 0x09, 0x09, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("a mode twice", [0x7A, 0x04, 0x10, 0x01, 0x10, 0x02]),
        ("setuid", [0x7A, 0x03, 0x10, 0xED, 0x13]),
        ("a mode of 33 bits", [0x7A, 0x06, 0x10, 0x80, 0x80, 0x80, 0x80, 0x10]),
        ("former attributes with another", [0x7A, 0x0A, 0x1A, 0x08, 0x0A, 0x06, 117, 115, 101, 114, 46, 97]),
        ("torn", [0x7A, 0x05, 0x00]),
    ]

    @Test(arguments: additions)
    func `what a plain operation does not have is read as generated code reads it`(
        name: String,
        bytes: [UInt8]
    ) throws {
        let plain = try WireOperation(try Self.plain()).body
        try agree(plain + bytes, "\(name)")
        try agree(bytes + plain, "\(name), before")
    }

    /// What may stand in a creation, right and wrong.
    static func creations() throws -> [(String, [UInt8])] {
        let parent = field(0x0A, Samples.folder.bytes)
        let name = field(0x12, Array("a".utf8))
        let otherName = field(0x12, Array("b".utf8))
        let place = field(0x0A, parent, name)
        let wireContent = try WireContent(Samples.file()).body
        let content = field(0x12, wireContent)
        let attributes = field(0x1A, [0x10, 0x01])
        let manifest = field(0x22, try Samples.manifest().encoded)
        let folder = field(0x12, [0x08, 0x02])
        let negativeSize: [UInt8] = [0x08, 0x01, 0x20, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]
        let largeKind: [UInt8] = [0x08, 0x81, 0x80, 0x80, 0x80, 0x10]
        var creations: [(String, [UInt8])] = []
        func add(_ name: String, _ parts: [UInt8]...) { creations.append((name, parts.flatMap { $0 })) }
        add("plain", place, content, attributes, manifest)
        add("another order", manifest, attributes, content, place)
        add("a place in two parts", field(0x0A, parent), field(0x0A, name), content, attributes, manifest)
        add("a place twice", field(0x0A, parent, otherName), place, content, attributes, manifest)
        add("two names", field(0x0A, parent, name, otherName), content, attributes, manifest)
        add("a name that is none, and one", field(0x0A, parent, [0x12, 0x00], name), content, attributes, manifest)
        add("a torn parent, and one", field(0x0A, [0x0A, 0x7F], parent, name), content, attributes, manifest)
        add(
            "an unknown field in the place",
            field(0x0A, parent, name, [0xA0, 0x06, 0x01]),
            content,
            attributes,
            manifest
        )
        add("no place", content, attributes, manifest)
        add("no content", place, attributes, manifest)
        add("no attributes", place, content, manifest)
        add("a content in two parts", place, field(0x12, [0x08, 0x01]), content, attributes, manifest)
        add("a kind of 33 bits", place, field(0x12, wireContent, largeKind), attributes, manifest)
        add("a kind twice", place, field(0x12, wireContent, [0x08, 0x04]), attributes, manifest)
        add("a target", place, field(0x12, wireContent, [0x2A, 0x01, 97]), attributes, manifest)
        add("a negative size", place, field(0x12, wireContent, negativeSize), attributes, manifest)
        add("no chunks", place, content, attributes)
        add("half a manifest", place, content, attributes, Array(manifest.dropLast(36)))
        add("a manifest twice", place, field(0x22, [1, 2, 3]), content, attributes, manifest)
        add("a manifest twice, the second torn", place, content, attributes, manifest, field(0x22, [1, 2, 3]))
        add("a folder", place, folder, attributes)
        add("a folder of no chunks", place, folder, attributes, [0x22, 0x00])
        add("a folder with a size", place, field(0x12, [0x08, 0x02, 0x20, 0x05]), attributes)
        add("a folder of chunks", place, folder, attributes, manifest)
        add("a time as a number", place, content, attributes, manifest, [0x28, 0x01])
        add("an edit's difference", place, content, attributes, manifest, [0x3A, 0x00])
        add("a former target", place, content, attributes, manifest, [0x42, 0x01, 97])
        return creations
    }

    @Test(arguments: try creations())
    func `a creation is read as generated code reads it`(name: String, creation: [UInt8]) throws {
        let head = Self.field(0x0A, OperationID(high: 1, low: 2).bytes) + Self.field(0x12, Samples.item.bytes)
        try agree(head + Self.field(0x1A, creation), "\(name)")
        // As an edit it has a place for its base: what comes last counts.
        try agree(head + Self.field(0x2A, creation), "\(name), as an edit")
        let base = Self.field(0x0A, Samples.revision.bytes)
        try agree(head + Self.field(0x2A, creation, base), "\(name), as an edit with two bases")
        let place = Self.field(0x0A, Self.field(0x0A, Samples.folder.bytes), Self.field(0x12, [97]))
        if creation.starts(with: place) {
            let rest = Array(creation.dropFirst(place.count))
            try agree(head + Self.field(0x2A, base, rest), "\(name), as an edit with a base")
            try agree(head + Self.field(0x2A, rest), "\(name), as an edit without one")
        }
    }

    /// Longer forms of a tag and of a length, which nobody writes: the first ones are allowed.
    static let forms: [[UInt8]] = [
        [0x8A, 0x00, 0x10],
        [0x8A, 0x80, 0x80, 0x80, 0x00, 0x10],
        [0x8A, 0x80, 0x80, 0x80, 0x80, 0x00, 0x10],
        [0x8A, 0x80, 0x80, 0x80, 0x10, 0x10],
        [0x0A, 0x90, 0x00],
        [0x0A, 0x90, 0x80, 0x80, 0x80, 0x80, 0x00],
        [0x0A, 0x90, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02],
    ]

    @Test(arguments: forms)
    func `another form of a number is read as generated code reads it`(head: [UInt8]) throws {
        let plain = try WireOperation(try Self.plain()).body
        #expect(plain.starts(with: [0x0A, 0x10]))
        try agree(head + plain.dropFirst(2))
    }

    @Test func `what is long without its manifest is refused, however that is made`() throws {
        let parent = Self.field(0x0A, Samples.folder.bytes)
        let parents = [UInt8](repeatElement(parent, count: CommitBody.longestOperation / 16).joined())
        var create = try WireCreate(body: Self.field(0x12, try WireContent(Samples.file()).body))
        create.manifest = Data(try Samples.manifest().encoded)
        create.attributes.mode = 0o644
        let place = Self.field(0x0A, parents, Self.field(0x12, [97]))
        let body = Self.field(
            0x22,
            Self.field(0x0A, OperationID(high: 1, low: 2).bytes),
            Self.field(0x12, Samples.item.bytes),
            Self.field(0x1A, place, try create.body)
        )
        let entries = try CommitBody(body: body).entries
        guard case .refused(let item, .tooLong) = entries.first else {
            Issue.record("\(entries.first.debugDescription)")
            return
        }
        #expect(item == Samples.item)
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `torn and spoiled bytes are read as generated code reads them`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<20 {
            var bytes = try WireOperation(try Self.operation(&generator)).body
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                guard !bytes.isEmpty else { break }
                // Most of what there is stands at the beginning and at the end; between them is the manifest.
                let near = Int.random(in: 0..<min(bytes.count, 200), using: &generator)
                let place = Bool.random(using: &generator) ? near : bytes.count - 1 - near
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: bytes[place] = .random(in: 0...255, using: &generator)
                case 1: bytes.remove(at: place)
                case 2: bytes.insert(.random(in: 0...255, using: &generator), at: place)
                default: bytes.removeSubrange(place..<bytes.count)
                }
            }
            try agree(bytes)
        }
    }
}
