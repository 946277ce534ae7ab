import Dispatch
import Glibc
import Replica
import SystemPackage
import Testing
import UbiquityModel

@Suite struct PlaceholderFileTests {
    let scratch: ScratchFolder
    let size = 1_000_003

    init() throws { scratch = try ScratchFolder() }

    private func make(mode: UInt16 = 0o644) throws -> PlaceholderFile {
        let folder = try scratch.openFolder()
        let placeholder = somePlaceholder(size: Int64(size), mode: mode)
        let made = try PlaceholderOperations.create(in: folder.raw, name: "file", placeholder)
        return PlaceholderFile(
            descriptor: try scratch.open(scratch.appending("file")),
            placeholder: placeholder,
            key: made.state.key
        )
    }

    private var wanted: [UInt8] { (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) } }

    private func fill(_ file: PlaceholderFile, _ range: Range<Int>, _ content: [UInt8]) throws {
        try content.withUnsafeBytes {
            try file.write(UnsafeRawBufferPointer(rebasing: $0[range]), at: Int64(range.lowerBound))
        }
    }

    private func pieces(_ length: Int) -> [Range<Int>] {
        stride(from: 0, to: size, by: length).map { $0..<min(size, $0 + length) }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `filled in any order it becomes whole, with its time and mode`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let file = try make(mode: 0o600)
        let wanted = wanted
        for range in pieces(70_000).shuffled(using: &generator) {
            let wide = Int64(range.lowerBound)..<Int64(range.upperBound)
            #expect(!file.contains(wide))
            #expect(throws: Errno.resourceTemporarilyUnavailable) { _ = try file.finish() }
            try fill(file, range, wanted)
            #expect(file.contains(wide))
            #expect(file.missing(in: wide).isEmpty)
        }
        let state = try file.finish()
        #expect(file.isWhole)
        #expect(state.placeholder == nil)
        #expect(state.modified == someTime)
        #expect(state.mode == 0o600)
        #expect(try content(file.descriptor) == wanted)
        #expect(try file.finish() == state)
    }

    @Test func `given up again it has what a program has set since that was decided`() throws {
        let file = try make()
        var decided = file.placeholder
        decided.generation += 1
        try file.setAttributes(modified: nil, mode: 0o600)
        let state = try file.evict(as: decided)
        #expect(state.mode == 0o600)
        #expect(state.placeholder?.mode == 0o600)
        #expect(state.placeholder?.generation == decided.generation)
    }

    /// Its row said then that the cloud has what a program had just written: it was never sent.
    @Test func `who comes to it when it is whole is told what it was then, and not what a program has made of it`()
        throws
    {
        let file = try make()
        try fill(file, 0..<size, wanted)
        let state = try file.finish()
        let writer = try scratch.open(scratch.appending("file"))
        #expect(pwrite(writer.raw, "more", 4, off_t(size)) == 4)
        #expect(try file.finish(isDurable: true) == state)
        #expect(try BackingTree.observe(descriptor: writer.raw) != state)
    }

    @Test func `one whose content is shorter than it was announced has no zeros at its end`() throws {
        let file = try make()
        let descriptor = try scratch.open(scratch.appending("file"))
        var placeholder = try #require(try PlaceholderOperations.read(descriptor.raw))
        placeholder.size = 1000
        let fitting = PlaceholderFile(
            descriptor: descriptor,
            placeholder: placeholder,
            key: file.key
        )
        try fill(fitting, 0..<1000, wanted)
        #expect(try fitting.finish().size == 1000)
    }

    @Test func `writers on several threads do not disturb each other`() throws {
        let file = try make()
        let wanted = wanted
        let pieces = pieces(10_000)
        DispatchQueue.concurrentPerform(iterations: pieces.count) { index in
            #expect(throws: Never.self) { try fill(file, pieces[index], wanted) }
        }
        #expect(file.isComplete)
        _ = try file.finish()
        #expect(try content(file.descriptor) == wanted)
    }

    @Test func `once discarded nothing is written any more`() throws {
        let file = try make()
        try fill(file, 0..<100, wanted)
        try file.truncate()
        try fill(file, 100..<200, wanted)
        #expect(try content(file.descriptor).isEmpty)
        #expect(try PlaceholderOperations.read(file.descriptor) == nil)
        #expect(throws: Errno.stale) { _ = try file.finish() }
        #expect(file.isDiscarded && !file.isWhole)
        // What is written from now on is the program's, and stays when somebody is late.
        #expect(([7] as [UInt8]).withUnsafeBytes { pwrite(file.descriptor, $0.baseAddress, 1, 0) } == 1)
        try file.truncate()
        #expect(try content(file.descriptor) == [7])
    }

    @Test func `a truncation that fails leaves a placeholder of which nothing is believed to be here`() throws {
        let folder = try scratch.openFolder()
        let placeholder = somePlaceholder(size: Int64(size))
        let made = try PlaceholderOperations.create(in: folder.raw, name: "file", placeholder)
        // The attribute can be set through it, the size cannot.
        let file = PlaceholderFile(
            descriptor: try scratch.open(scratch.appending("file"), O_RDONLY),
            placeholder: placeholder,
            present: ByteRangeSet(0..<100),
            key: made.state.key
        )
        #expect(throws: Errno.self) { try file.truncate() }
        #expect(!file.isDiscarded && file.present.ranges.isEmpty)
        let left = try #require(try PlaceholderOperations.read(file.descriptor))
        #expect(left.generation != placeholder.generation && left == file.placeholder)
    }

    @Test func `once evicted nothing is written any more, and the other placeholder stays`() throws {
        let file = try make()
        try fill(file, 0..<size, wanted)
        var other = file.placeholder
        other.generation += 1
        #expect(try file.evict(as: other).placeholder == other)
        try fill(file, 0..<100, wanted)
        #expect(throws: Errno.stale) { _ = try file.finish() }
        #expect(try content(file.descriptor).allSatisfy { $0 == 0 })
        #expect(try PlaceholderOperations.read(file.descriptor) == other)
    }

    @Test func `a late chunk leaves a whole file alone`() throws {
        let file = try make()
        try fill(file, 0..<size, wanted)
        _ = try file.finish()
        try fill(file, 0..<1, [0xFF])
        #expect(try content(file.descriptor) == wanted)
    }

    @Test(arguments: [-1, 1_000_000, .max] as [Int64])
    func `nothing is written outside of the file`(offset: Int64) throws {
        let file = try make()
        #expect(throws: Errno.invalidArgument) {
            try ([1, 2, 3, 4] as [UInt8]).withUnsafeBytes { try file.write($0, at: offset) }
        }
        #expect(file.present.ranges.isEmpty)
    }

    @Test func `asking beyond the end is asking up to the end`() throws {
        let file = try make()
        #expect(file.missing(in: 999_000..<2_000_000) == [999_000..<1_000_003])
        try fill(file, 999_000..<size, wanted)
        #expect(file.contains(999_000..<2_000_000))
    }

    @Test func `what is durable is said after the sync, and read back`() throws {
        let file = try make()
        try fill(file, 500..<600, wanted)
        #expect(try file.synchronize() == ByteRangeSet(500..<600))
        var read = [UInt8](repeating: 0, count: 100)
        #expect(try read.withUnsafeMutableBytes { try file.read(into: $0, at: 500) } == 100)
        #expect(read == Array(wanted[500..<600]))
    }

    @Test func `a time set meanwhile is the one that stays`() throws {
        let file = try make()
        let later = Timestamp(nanoseconds: someTime.nanoseconds + 7)
        try file.setAttributes(modified: later, mode: 0o400)
        try fill(file, 0..<size, wanted)
        let state = try file.finish()
        #expect(state.modified == later)
        #expect(state.mode == 0o400)
    }

    @Test func `an empty one is complete from the beginning`() throws {
        let folder = try scratch.openFolder()
        let made = try PlaceholderOperations.create(in: folder.raw, name: "empty", somePlaceholder(size: 0))
        let file = PlaceholderFile(
            descriptor: try scratch.open(scratch.appending("empty")),
            placeholder: somePlaceholder(size: 0),
            key: made.state.key
        )
        #expect(try file.finish().placeholder == nil)
    }
}
