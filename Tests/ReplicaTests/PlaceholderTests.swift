import CLinux
import Glibc
import Replica
import SystemPackage
import Testing
import UbiquityModel

@Suite struct PlaceholderTests {
    let scratch: ScratchFolder
    let folder: OwnedDescriptorBox

    init() throws {
        scratch = try ScratchFolder()
        folder = OwnedDescriptorBox(try scratch.openFolder())
    }

    @Test func `comes back from its bytes, also with more behind them`() {
        let placeholder = Placeholder(
            revision: .random(),
            generation: .max,
            size: 1 << 40,
            modified: Timestamp(nanoseconds: -1),
            mode: 0o751,
            wasAnnounced: true
        )
        #expect(Placeholder(encoded: placeholder.encoded) == placeholder)
        #expect(Placeholder(encoded: placeholder.encoded + [1, 2, 3]) == placeholder)
        #expect(Placeholder(encoded: somePlaceholder(size: 5).encoded)?.wasAnnounced == false)
    }

    @Test func `of an older version has no flags`() {
        let placeholder = somePlaceholder(size: 5)
        #expect(Placeholder(encoded: Array(placeholder.encoded.dropLast())) == placeholder)
    }

    @Test func `of a newer version, cut short or senseless is none`() {
        let bytes = somePlaceholder(size: 5).encoded
        #expect(Placeholder(encoded: [2] + bytes.dropFirst()) == nil)
        #expect(Placeholder(encoded: Array(bytes.dropLast(2))) == nil)
        #expect(Placeholder(encoded: []) == nil)
        #expect(Placeholder(encoded: Array(bytes[..<25]) + [255] + Array(bytes[26...])) == nil)
    }

    @Test(arguments: [0, 1, 10_000_000_000] as [Int64])
    func `a new one has the true size, time and mode, its attributes, and no blocks`(size: Int64) throws {
        let extended = [Array("user.color".utf8): Array("green".utf8)]
        let made = try PlaceholderOperations.create(
            in: folder.raw,
            name: "new",
            somePlaceholder(size: size, mode: 0o640),
            extended: extended
        )
        #expect(made.refused.isEmpty)
        #expect(made.state.placeholder == somePlaceholder(size: size, mode: 0o640))
        #expect(made.state.size == size)
        #expect(made.state.mode == 0o640)
        #expect(made.state.modified == someTime)
        let file = try scratch.open(scratch.appending("new"))
        var status = clinux_status()
        #expect(clinux_status_of(file.raw, &status) == 0)
        #expect(status.size == size)
        #expect(status.modified_seconds == 1_600_000_000)
        #expect(status.modified_nanoseconds == 123_456_789)
        // At most the block of the attributes.
        #expect(status.blocks <= 8)
        #expect(try ExtendedAttributes.synced(file.raw) == extended)
    }

    @Test func `attributes that are ours or too big are refused, the placeholder stays`() throws {
        let big = Array("user.big".utf8)
        let ours = Array(ExtendedAttributes.placeholder.utf8)
        let made = try PlaceholderOperations.create(
            in: folder.raw,
            name: "new",
            somePlaceholder(size: 9),
            extended: [big: [UInt8](repeating: 1, count: 70_000), ours: [1]]
        )
        #expect(Set(made.refused) == [big, ours])
        #expect(made.state.placeholder == somePlaceholder(size: 9))
    }

    @Test func `evicting frees the blocks and changes neither size nor time nor inode`() throws {
        let file = try scratch.write("full", [UInt8](repeating: 7, count: 300_000), mode: 0o600)
        #expect(fsync(file.raw) == 0)
        try setModified(file.raw, someTime)
        let before = try BackingTree.observe(descriptor: file.raw)
        let placeholder = somePlaceholder(size: before.size, mode: 0o600)
        let after = try PlaceholderOperations.evict(file.raw, as: placeholder)
        #expect(after.placeholder == placeholder)
        #expect(after.key == before.key)
        var status = clinux_status()
        #expect(clinux_status_of(file.raw, &status) == 0)
        #expect(status.size == 300_000)
        #expect(status.blocks <= 8)
        #expect(Timestamp(seconds: status.modified_seconds, nanoseconds: status.modified_nanoseconds) == someTime)
    }

    /// A crash leaves the attribute and anything else.
    @Test(arguments: [0, 100, 400_000] as [Int64])
    func `repairing puts size and time right from the attribute`(size: Int64) throws {
        let file = try scratch.write("broken", [UInt8](repeating: 7, count: Int(size)))
        #expect(try !PlaceholderOperations.repair(file.raw), "a whole file is left alone")
        try PlaceholderOperations.write(somePlaceholder(size: 300_000), to: file.raw)
        let state = try BackingTree.observe(descriptor: file.raw)
        #expect(state.size == 300_000)
        #expect(state.modified == someTime)
        #expect(try PlaceholderOperations.repair(file.raw))
        var status = clinux_status()
        #expect(clinux_status_of(file.raw, &status) == 0)
        #expect(status.size == 300_000)
        #expect(status.modified_nanoseconds == 123_456_789)
        #expect(try !PlaceholderOperations.repair(file.raw), "once is enough")
    }

    @Test func `truncating makes an ordinary empty file with the true mode`() throws {
        _ = try PlaceholderOperations.create(in: folder.raw, name: "new", somePlaceholder(size: 5000, mode: 0o660))
        let file = try scratch.open(scratch.appending("new"))
        try PlaceholderOperations.truncate(file.raw)
        let state = try BackingTree.observe(descriptor: file.raw)
        #expect(state.placeholder == nil)
        #expect(state.size == 0)
        #expect(state.mode == 0o660)
    }

    @Test func `times and mode set on a dataless file are the placeholder's`() throws {
        _ = try PlaceholderOperations.create(in: folder.raw, name: "new", somePlaceholder(size: 5000))
        let file = try scratch.open(scratch.appending("new"))
        let later = Timestamp(nanoseconds: someTime.nanoseconds + 5)
        let placeholder = try PlaceholderOperations.setAttributes(file.raw, modified: later, mode: 0o755)
        #expect(placeholder.modified == later)
        let state = try BackingTree.observe(descriptor: file.raw)
        #expect(state.placeholder == placeholder)
        #expect(state.mode == 0o755)
        #expect(try !PlaceholderOperations.repair(file.raw))
    }

    @Test func `one that cannot be read is an error, never a whole file`() throws {
        let file = try scratch.write("future", [1, 2, 3])
        try ExtendedAttributes.set(file.raw, ExtendedAttributes.placeholder, [9, 9, 9])
        #expect(throws: Errno.unreadablePlaceholder) { _ = try BackingTree.observe(descriptor: file.raw) }
    }
}

/// For suites, which are copyable.
final class OwnedDescriptorBox {
    let descriptor: OwnedDescriptor
    var raw: Int32 { descriptor.raw }

    init(_ descriptor: consuming OwnedDescriptor) { self.descriptor = descriptor }
}
