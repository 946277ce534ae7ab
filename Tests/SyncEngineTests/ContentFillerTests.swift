import Glibc
import Replica
import Testing
import UbiquityModel

@testable import SyncEngine

/// What comes next of dataless files that programs have open, apart from its coming.
@Suite struct ContentFillerTests {
    private func entry(size: Int64) throws -> ContentFiller.FileState {
        let descriptor = open("/dev/null", O_RDWR | O_CLOEXEC)
        try #require(descriptor >= 0)
        let placeholder = Placeholder(
            revision: .random(),
            generation: 1,
            size: size,
            modified: Timestamp(nanoseconds: 0),
            mode: 0o644
        )
        return ContentFiller.FileState(
            file: PlaceholderFile(
                descriptor: OwnedDescriptor(descriptor),
                placeholder: placeholder,
                key: InodeKey(tag: 1, words: (1, 0, 0))
            )
        )
    }

    @Test func `read-ahead grows while reading goes on, over no link that costs, up to the end of the largest file`()
        throws
    {
        let smallest = ContentFiller.smallestWindow
        var entry = try entry(size: .max)
        entry.noteRead(0..<4096, isMetered: false)
        #expect(entry.window == smallest)
        entry.noteRead(4096..<8192, isMetered: false)
        #expect(entry.window == 2 * smallest)
        entry.noteRead(8192..<12288, isMetered: true)
        #expect(entry.window == smallest)
        let last = Int64.max - 4096..<Int64.max
        entry.noteRead(last, isMetered: false)
        #expect(entry.window == smallest)
        entry.noteRead(last, isMetered: false)
        #expect(entry.window == 2 * smallest && !entry.wantsRest)
        while entry.window < ContentFiller.largestWindow { entry.noteRead(last, isMetered: false) }
        #expect(entry.wantsRest)
    }

    @Test func `of many files that are open the rest comes of some at a time, first of those that wait for longest`()
        throws
    {
        let entries = try (0..<40).map { _ in try entry(size: 1_000_000) }
        let ids = entries.map { ObjectIdentifier($0.file) }
        var state = ContentFiller.State()
        for (id, entry) in zip(ids, entries) {
            state.files[id] = entry
            state.files[id]?.openCount = 1
            state.files[id]?.wantsRest = true
            state.putOffRest(id)
        }
        // Somebody reads this one, and that one is closed.
        state.files[ids[0]]?.isPumping = true
        state.files[ids[1]]?.openCount = 0
        var taken = state.takeRests().map { ObjectIdentifier($0) }
        #expect(taken == Array(ids[2..<17]))
        #expect(state.takeRests().isEmpty)
        for id in taken { state.files[id]?.isPumping = false }
        taken = state.takeRests().map { ObjectIdentifier($0) }
        #expect(taken == Array(ids[17..<32]))
        for id in taken { state.files[id]?.isPumping = false }
        #expect(state.takeRests().count == 8)
        #expect(!state.hasPutOff)
    }
}
