import Glibc
import Replica
import Testing
import UbiquityModel

@testable import Driver

/// Parts of the driver that need no mount.
struct PartsTests {
    @Test
    func `the cache of descriptors keeps its limit and what is used`() throws {
        let cache = DescriptorCache(limit: 16)
        func opened() throws -> SharedDescriptor {
            let descriptor = open("/dev/null", O_RDONLY)
            try #require(descriptor >= 0)
            return SharedDescriptor(descriptor)
        }
        for node in 0..<16 { _ = cache.insert(try opened(), for: UInt64(node)) }
        _ = cache.descriptor(of: 3)
        for node in 100..<112 { _ = cache.insert(try opened(), for: UInt64(node)) }
        #expect(cache.count == 16)
        #expect(cache.descriptor(of: 3) != nil)
        #expect(cache.descriptor(of: 0) == nil)
        cache.remove(3)
        #expect(cache.descriptor(of: 3) == nil)
        cache.shrink()
        #expect(cache.count <= 8)
    }

    @Test
    func `a change of attributes keeps evictions away, and waits for one that is under way`() async throws {
        let key = InodeKey(tag: 1, words: (2, 3, 4))
        let node = Node(id: 7, key: key, kind: .file, parent: key, name: try Name("f"), facts: Node.Facts())
        #expect(node.beginChange {})
        #expect(node.beginHold(alone: true) == .busy)
        // What replaces the inode does not look at its attributes.
        #expect(node.beginHold(alone: false) == nil)
        _ = node.endHold(.free)
        node.endChange()
        #expect(node.beginHold(alone: true) == nil)
        await confirmation("it goes on when the eviction is done") { goesOn in
            let isBegun = node.beginChange { goesOn() }
            #expect(!isBegun)
            for waiting in node.endHold(.free) { waiting() }
        }
        // It has not begun by that: it asks again.
        #expect(node.beginHold(alone: true) == nil)
    }

    @Test
    func `of writers that leave together the last one looks for mappings`() throws {
        var writers = DirectWriters()
        writers.come(mayMap: true)
        writers.come(mayMap: false)
        let first = writers.leave()
        #expect(first == nil)
        // The first is still being closed.
        let second = writers.leave()
        let firstWasLast = writers.end()
        #expect(!firstWasLast)
        writers.looked(try #require(second), isMapped: true)
        let again = writers.leave()
        writers.looked(try #require(again), isMapped: false)
        #expect(!writers.mayHaveMapped)
        let secondWasLast = writers.end()
        #expect(secondWasLast)
        #expect(writers.count == 0)
    }

    @Test
    func `that nothing is mapped says nothing of a writer who came meanwhile`() throws {
        var writers = DirectWriters()
        writers.come(mayMap: true)
        let look = writers.leave()
        writers.come(mayMap: true)
        writers.looked(try #require(look), isMapped: false)
        #expect(writers.mayHaveMapped)
        let firstWasLast = writers.end()
        #expect(!firstWasLast)
        let later = writers.leave()
        #expect(later != nil)
    }

    @Test
    func `that nothing was mapped says nothing of the first writer either, if he came meanwhile`() throws {
        var writers = DirectWriters()
        // As of a file that may have been open through an earlier mount.
        writers.mayHaveMapped = true
        let look = writers.look()
        writers.come(mayMap: true)
        writers.looked(look, isMapped: false)
        #expect(writers.mayHaveMapped)
        let closed = writers.leave()
        writers.looked(try #require(closed), isMapped: false)
        #expect(!writers.mayHaveMapped)
    }

    @Test
    func `a writer that a mapping keeps leaves the looking to one who closes at the same time`() throws {
        var writers = DirectWriters()
        writers.come(mayMap: true)
        let mapped = writers.leave()
        writers.looked(try #require(mapped), isMapped: true)
        writers.come(mayMap: false)
        let kept = writers.leave()
        #expect(kept == nil)
        let closed = writers.leave()
        let keptWasLast = writers.end()
        #expect(!keptWasLast)
        writers.looked(try #require(closed), isMapped: false)
        #expect(!writers.mayHaveMapped)
        let closedWasLast = writers.end()
        #expect(closedWasLast)
    }

    @Test(arguments: [(0, 0), (1, 1), (512, 1), (513, 2), (.max, 1 << 54)] as [(Int64, Int64)])
    func `a version of any size has its blocks`(size: Int64, blocks: Int64) {
        #expect(VersionTree.blocks(of: size) == blocks)
    }

    @Test
    func `a listing goes on at the same place when items came from the cloud to the disk meanwhile`() throws {
        let names = try (0..<500).map { try Name("item \($0)") }
        let cloud = names.map { CloudEntry(id: .random(), name: $0, kind: .file) }
        var before = CloudListing()
        before.begin(cloud: cloud, disk: [])
        var seen = before.rest(after: 2).prefix(200).map(\.name)
        let offset = try #require(before.rest(after: 2).dropFirst(199).first?.next)
        // Another handle, every third one now on the disk, and some in both lists.
        var disk: [(inode: UInt64, type: UInt8, name: Name)] = []
        var left: [CloudEntry] = []
        for (number, entry) in cloud.enumerated() {
            if number % 3 == 0 { disk.append((7, 8, entry.name)) }
            if number % 3 != 0 || number % 2 == 0 { left.append(entry) }
        }
        var later = CloudListing()
        later.begin(cloud: left, disk: disk)
        seen += later.rest(after: offset).map(\.name)
        #expect(seen.count == 500)
        #expect(Set(seen) == Set(names))
        #expect(later.rest(after: 2).count { $0.isOnDisk } == disk.count)
        #expect(later.rest(after: .max - 2).isEmpty)
    }

    struct Signals: Sendable {
        let status: String
        let areFatal: Bool
    }

    @Test(arguments: [
        Signals(
            status: "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\nSigBlk:\t0\nSigCgt:\t0\n",
            areFatal: true
        ),
        Signals(
            status: "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000002\nSigBlk:\t0\nSigCgt:\t0\n",
            areFatal: true
        ),
        Signals(
            status: "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000002\nSigBlk:\t0\nSigCgt:\t2\n",
            areFatal: false
        ),
        Signals(
            status: "SigPnd:\t0000000000000002\nShdPnd:\t0000000000000000\nSigBlk:\t2\nSigCgt:\t0\n",
            areFatal: false
        ),
        Signals(
            status: "SigPnd:\t0000000000080000\nShdPnd:\t0000000000000000\nSigBlk:\t0\nSigCgt:\t0\n",
            areFatal: false
        ),
        Signals(
            status: "SigPnd:\t0000000000000102\nShdPnd:\t0000000000000000\nSigBlk:\t0\nSigCgt:\t2\n",
            areFatal: true
        ),
        Signals(status: "", areFatal: false),
    ])
    func `a signal is fatal when it is neither caught nor blocked nor a stop`(example: Signals) {
        #expect(PendingSignals(status: example.status).areFatal == example.areFatal)
    }

    struct Moment: Sendable {
        let nanoseconds: Int64
        let text: String
    }

    @Test(arguments: [
        Moment(nanoseconds: 0, text: "1970-01-01T00:00:00.000Z"),
        Moment(nanoseconds: -1_000_000, text: "1969-12-31T23:59:59.999Z"),
        Moment(nanoseconds: 951_782_400_000_000_000, text: "2000-02-29T00:00:00.000Z"),
        Moment(nanoseconds: 1_795_256_102_123_456_789, text: "2026-11-21T10:15:02.123Z"),
        Moment(nanoseconds: 4_107_542_399_999_000_000, text: "2100-02-28T23:59:59.999Z"),
    ])
    func `moments are written in UTC`(example: Moment) {
        #expect(VersionName.moment(Timestamp(nanoseconds: example.nanoseconds)) == example.text)
    }
}
