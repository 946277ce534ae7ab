import CloudProtocol
import FoundationEssentials
import SwiftProtobuf
import Testing
import UbiquityModel

/// A way of spoiling a message, and what is said of it.
struct Spoiled<Message: Sendable>: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var error: WireError
    var spoil: @Sendable (inout Message) -> Void

    init(_ description: String, _ error: WireError, _ spoil: @escaping @Sendable (inout Message) -> Void) {
        testDescription = description
        self.error = error
        self.spoil = spoil
    }
}

@Suite struct RemoteItemWireTests {
    static func contents() throws -> [ItemContent] {
        [
            .folder, .symlink(target: Array("../elsewhere".utf8)), try Samples.file(),
            .file(FileContent(revision: Samples.revision, content: nil, size: 5)),
        ]
    }

    @Test(arguments: try contents())
    func `an item comes back as it went`(content: ItemContent) throws {
        let item = try Samples.remote(content)
        let bytes = try WireItem(item, manifest: nil).body
        #expect(try RemoteItem(wire: WireItem(body: bytes)) == item)
    }

    @Test func `equal items are equal bytes`() throws {
        let item = try Samples.remote()
        #expect(try WireItem(item, manifest: nil).body == WireItem(item, manifest: nil).body)
    }

    static let spoiled: [Spoiled<WireItem>] = [
        Spoiled("no id", .missing("the item's id")) { $0.id = Data() },
        Spoiled("a short id", .wrongLength("the item's id", bytes: 15)) { $0.id = Data(count: 15) },
        Spoiled("the root", .contradiction("the root folder is never sent")) { $0.id = Data(count: 16) },
        Spoiled("no place", .missing("the item's place")) { $0.clearPlace() },
        Spoiled("no folder", .missing("the folder's id")) { $0.place.parent = Data() },
        Spoiled("in itself", .contradiction("an item lies in itself")) { $0.place.parent = $0.id },
        Spoiled("no name", .badName(.empty)) { $0.place.name = Data() },
        Spoiled("a slash", .badName(.containsSlash)) { $0.place.name = Data("a/b".utf8) },
        Spoiled("the parent", .badName(.dots)) { $0.place.name = Data("..".utf8) },
        Spoiled("itself", .badName(.dots)) { $0.place.name = Data(".".utf8) },
        Spoiled("a NUL", .badName(.containsNUL)) { $0.place.name = Data([97, 0]) },
        Spoiled("a long name", .badName(.tooLong)) { $0.place.name = Data(repeating: 97, count: 256) },
        Spoiled("no kind", .missing("the kind of an item")) { $0.content.kind = .unknown },
        Spoiled("a new kind", .unknown("the kind of an item", value: "9")) { $0.content.kind = .UNRECOGNIZED(9) },
        Spoiled("no revision", .missing("the revision")) { $0.content.revision = Data() },
        Spoiled("a short content id", .wrongLength("the content's id", bytes: 31)) {
            $0.content.content = Data(count: 31)
        },
        Spoiled("a negative size", .outOfRange("a file's size", value: -1)) { $0.content.size = -1 },
        Spoiled("setuid", .outOfRange("the permission bits", value: 0o4755)) { $0.attributes.mode = 0o4755 },
        Spoiled("our own attribute", .unknown("an extended attribute", value: "user.ubiquity.control")) {
            $0.attributes.extended[0].name = Data("user.ubiquity.control".utf8)
        },
        Spoiled("a system attribute", .unknown("an extended attribute", value: "security.selinux")) {
            $0.attributes.extended[0].name = Data("security.selinux".utf8)
        },
        Spoiled("an attribute twice", .contradiction("an extended attribute comes twice")) {
            $0.attributes.extended.append($0.attributes.extended[0])
        },
        Spoiled("a conflict without a name", .badName(.empty)) { $0.conflicts[0].name = Data() },
        Spoiled("a conflict of a new kind", .unknown("the kind of a version", value: "300")) {
            $0.conflicts[0].kind = 300
        },
    ]

    @Test(arguments: spoiled)
    func `what cannot be is refused`(spoiled: Spoiled<WireItem>) throws {
        var wire = WireItem(try Samples.remote(), manifest: nil)
        spoiled.spoil(&wire)
        #expect(throws: spoiled.error) { try RemoteItem(wire: wire) }
    }

    @Test(arguments: [
        ([UInt8](), WireError.missing("a symbolic link's target")),
        ([97, 0], .contradiction("a symbolic link's target contains a NUL byte")),
        ([UInt8](repeating: 97, count: 4096), .tooLong("a symbolic link's target", bytes: 4096, limit: 4095)),
    ])
    func `a link's target is checked`(target: [UInt8], error: WireError) throws {
        let wire = WireItem(try Samples.remote(.symlink(target: target)), manifest: nil)
        #expect(throws: error) { try RemoteItem(wire: wire) }
    }

    @Test func `extended attributes have a limit`() throws {
        var wire = WireItem(try Samples.remote(), manifest: nil)
        wire.attributes.extended[0].value = Data(count: 65 * 1024)
        #expect(throws: WireError.self) { try RemoteItem(wire: wire) }
    }

    @Test func `fields of newer versions are kept and do no harm`() throws {
        // Field 100, a varint, at the end of an item.
        let bytes = try WireItem(try Samples.remote(), manifest: nil).body + [0xA0, 0x06, 0x01]
        let wire = try WireItem(body: bytes)
        #expect(try RemoteItem(wire: wire) == Samples.remote())
        #expect(try wire.body == bytes)
    }

    @Test func `a short manifest comes along, a long one does not`() throws {
        let item = try Samples.remote()
        let manifest = try Samples.manifest()
        let inline = try #require(try WireItem(item, manifest: manifest).inlineManifest(for: item))
        #expect(inline.manifest == manifest)
        #expect(inline.content == (try Samples.digest(9)))
        let entry = Manifest.Entry(chunk: try Samples.digest(1), length: 1)
        let long = Manifest(entries: Array(repeating: entry, count: WireItem.longestInlineManifest + 1))
        #expect(try WireItem(item, manifest: long).inlineManifest(for: item) == nil)
    }

    @Test func `an empty file's manifest is known without one`() throws {
        let empty = try Samples.remote(
            .file(FileContent(revision: Samples.revision, content: try Samples.digest(9), size: 0))
        )
        let inline = try #require(try WireItem(empty, manifest: nil).inlineManifest(for: empty))
        #expect(inline.manifest.entries.isEmpty)
    }

    @Test func `a manifest that does not add up is refused`() throws {
        let item = try Samples.remote(
            .file(FileContent(revision: Samples.revision, content: try Samples.digest(9), size: 1))
        )
        let wire = WireItem(item, manifest: try Samples.manifest())
        #expect(throws: WireError.self) { try wire.inlineManifest(for: item) }
    }
}
