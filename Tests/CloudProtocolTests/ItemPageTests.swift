import CloudProtocol
import FoundationEssentials
import TestSupport
import Testing
import UbiquityModel

/// Pages of items are read and written without generated code where that is possible: what comes out must be the same.
@Suite struct ItemPageTests {
    /// Items of all kinds, with the values at which encodings change.
    static func item(_ generator: inout some RandomNumberGenerator) throws -> (RemoteItem, Manifest?) {
        func pick<Element>(_ elements: [Element]) -> Element {
            // None of the lists is empty.
            elements.randomElement(using: &generator) ?? elements[0]
        }
        let digest: ContentID = try Samples.digest(UInt8.random(in: 0...255, using: &generator))
        let entry = Manifest.Entry(chunk: try Samples.digest(1), length: pick([1, 127, 128, 262_144]))
        let manifest = Manifest(entries: Array(repeating: entry, count: pick([0, 1, 2, 32, 33])))
        let size = pick([manifest.size, manifest.size, 0, 127, 128, .max])
        let revision = RevisionID(using: &generator)
        let content: ItemContent = pick([
            .folder, .symlink(target: Array("elsewhere".utf8)),
            .file(FileContent(revision: revision, content: nil, size: size)),
            .file(FileContent(revision: revision, content: digest, size: size)),
            .file(FileContent(revision: revision, content: digest, size: size)),
        ])
        var item = RemoteItem(
            id: ItemID(using: &generator),
            place: Place(
                parent: pick([.root, ItemID(using: &generator)]),
                name: try Name(bytes: [UInt8](repeating: 0xF0, count: pick([1, 20, 108, 109, 127, 128, 255])))
            ),
            content: content,
            attributes: ItemAttributes(
                modified: Timestamp(nanoseconds: pick([0, 1, -1, .max, .min])),
                mode: pick([0, 0o644, 0o777])
            ),
            position: pick([0, 1, 127, 128, .max]),
            isDeleted: pick([false, true]),
            author: pick(["", "laptop", "Ä", String(repeating: "x", count: 20_000)]),
            edited: Timestamp(nanoseconds: pick([0, 5, -7]))
        )
        if pick([true, false, false]) { item.attributes.extended = [Array("user.note".utf8): [1, 2, 3]] }
        if pick([true, false, false, false]) { item.conflicts = try Samples.remote().conflicts }
        return (item, pick([manifest, manifest, nil]))
    }

    @Test(arguments: 0..<64 as Range<UInt64>)
    func `the bytes are those of generated code, and are read as generated code reads them`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let items = try (0..<64).map { _ in try Self.item(&generator) }
        var rest = WireChildrenResponse(complete: 7, last: try Name("last"))
        let body = try ItemPage.body(items.map { (item: $0.0, manifest: $0.1) }, rest)
        let page = try ItemPage<WireChildrenResponse>(body: body)
        #expect(page.rest == rest)
        rest.items = items.map { WireItem($0.0, manifest: $0.1) }
        #expect(try WireChildrenResponse(body: body) == rest)
        // Generated code writes the fields in their order.
        #expect(try ItemPage<WireChildrenResponse>(body: rest.body).items == page.items)
        for (wire, item) in zip(rest.items, items) {
            let alone = try ItemPage.body([(item: item.0, manifest: item.1)], WireChanges())
            var expected = WireChanges()
            expected.items = [wire]
            #expect(try alone == expected.body)
        }
        // An item whose manifest contradicts its size is told all the same.
        #expect(page.items == items.map(\.0))
        let manifests = items.compactMap { item, _ -> ContentID? in
            guard case .file(let file) = item.content else { return nil }
            return file.content
        }
        #expect(Set(page.manifests.keys).isSubset(of: manifests))
        for (wire, item) in zip(rest.items, items) {
            guard let (content, _) = try? wire.inlineManifest(for: item.0) else { continue }
            #expect(page.manifests[content] != nil)
        }
    }

    /// The same that the general way says, for every way of spoiling an item.
    @Test(arguments: RemoteItemWireTests.spoiled)
    func `what cannot be is left out and told, and the others stay`(spoiled: Spoiled<WireItem>) throws {
        var plain = try Samples.remote()
        plain.attributes.extended = [:]
        plain.conflicts = []
        for original in [try Samples.remote(), plain] {
            var wire = WireItem(original, manifest: nil)
            if wire.attributes.extended.isEmpty || wire.conflicts.isEmpty {
                // What is spoiled in parts that a plain item has not cannot be spoiled there.
                guard
                    !["our own attribute", "a system attribute", "an attribute twice"].contains(
                        spoiled.testDescription
                    ),
                    !spoiled.testDescription.hasPrefix("a conflict")
                else { continue }
            }
            spoiled.spoil(&wire)
            var message = WireChanges()
            message.items = [wire, WireItem(plain, manifest: nil)]
            let page = try ItemPage<WireChanges>(body: message.body)
            #expect(page.items == [plain])
            #expect(page.refused == ["item \(Hexadecimal.encode(wire.id)): \(spoiled.error)"])
        }
    }

    @Test func `fields of newer versions do no harm`() throws {
        var plain = try Samples.remote()
        plain.attributes.extended = [:]
        plain.conflicts = []
        // Field 100, a varint, in the item and in the page; and one of each other kind in the page.
        let item = try WireItem(plain, manifest: nil).body + [0xA0, 0x06, 0x01]
        var body: [UInt8] = [0x0A, UInt8(item.count & 0x7F) | 0x80, UInt8(item.count >> 7)] + item
        body += [0xA0, 0x06, 0x01, 0xA2, 0x06, 0x01, 0x00, 0xA5, 0x06, 1, 2, 3, 4, 0xA1, 0x06, 1, 2, 3, 4, 5, 6, 7, 8]
        #expect(item.count > 127)
        let page = try ItemPage<WireChanges>(body: body)
        #expect(page.items == [plain])
        #expect(page.refused == [])
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `torn and random bytes are refused, and never read beyond their end`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let items = try (0..<4).map { _ in try Self.item(&generator) }.map { (item: $0.0, manifest: $0.1) }
        var body = try ItemPage.body(items, WireChanges())
        for _ in 0..<20 {
            let torn = Array(body.prefix(Int.random(in: 0...body.count, using: &generator)))
            _ = try? ItemPage<WireChanges>(body: torn)
            body[Int.random(in: 0..<min(body.count, 400), using: &generator)] = .random(in: 0...255, using: &generator)
            let page = try? ItemPage<WireChanges>(body: body)
            let reference = try? WireChanges(body: body)
            // Whatever generated code finds, this finds: items, or reasons to leave them out.
            if let page, let reference {
                #expect(page.items.count + page.refused.count >= reference.items.count)
            }
        }
        #expect(throws: WireError.self) { try ItemPage<WireChanges>(body: [0x0A, 0x05, 0x00]) }
        #expect(throws: WireError.self) {
            try ItemPage<WireChanges>(body: [UInt8](repeating: 0xFF, count: 11))
        }
    }
}
