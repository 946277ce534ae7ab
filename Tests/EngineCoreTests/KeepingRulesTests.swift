import EngineCore
import Testing
import UbiquityModel

/// What goes by itself, and in what order.
struct KeepingRulesTests {
    private static let day: Int64 = 86_400 * 1_000_000_000
    private let now = Timestamp(nanoseconds: 1000 * Self.day)

    /// Contents of so many bytes, each used so many days ago, the least recently used first.
    private func contents(_ list: [(days: Int64, bytes: Int64)]) -> [KeptContent] {
        list.enumerated().map { index, one in
            KeptContent(
                id: ItemID(high: 0, low: UInt64(index)),
                bytes: one.bytes,
                lastUsed: Timestamp(nanoseconds: now.nanoseconds - one.days * Self.day)
            )
        }
    }

    private func outgoing(
        _ list: [(days: Int64, bytes: Int64)],
        limit: Int64? = nil,
        unused: Duration? = nil,
        greedy: Bool = false,
        others: Int64 = 0
    ) -> [UInt64] {
        var rules = KeepingRules()
        rules.limitBytes = limit
        rules.unusedLimit = unused
        rules.isGreedy = greedy
        let contents = contents(list)
        let bytes = contents.reduce(others) { Sizes.sum($0, $1.bytes) }
        return rules.outgoing(contents, localBytes: bytes, at: now).map(\.low)
    }

    @Test
    func `nothing goes without a rule, and nothing while the limit is kept`() {
        let list: [(days: Int64, bytes: Int64)] = [(900, 50), (2, 50)]
        #expect(outgoing(list) == [])
        #expect(outgoing(list, limit: 100) == [])
    }

    @Test
    func `beyond the limit the least recently used go, until a twentieth below it`() {
        let list: [(days: Int64, bytes: Int64)] = [(9, 3), (8, 2), (7, 1), (6, 60), (5, 35)]
        #expect(outgoing(list, limit: 100) == [0, 1, 2])
        #expect(outgoing(list, limit: 101) == [])
    }

    @Test
    func `what is here besides counts, and all goes if that is not enough`() {
        #expect(outgoing([(9, 10), (8, 10)], limit: 100, others: 1000) == [0, 1])
        #expect(outgoing([(9, .max), (8, 10)], limit: 100) == [0])
    }

    @Test
    func `what nobody opened for so long goes, and not a moment earlier`() {
        let list: [(days: Int64, bytes: Int64)] = [(62, 1), (61, 1), (60, 1), (59, 1)]
        #expect(outgoing(list, unused: .seconds(60 * 86_400)) == [0, 1])
        #expect(outgoing(list, unused: .seconds(Int64.max)) == [])
    }

    @Test
    func `age and limit together take the longer list`() {
        let list: [(days: Int64, bytes: Int64)] = [(62, 1), (61, 1), (3, 1), (2, 99)]
        #expect(outgoing(list, limit: 100, unused: .seconds(60 * 86_400)) == [0, 1, 2, 3])
        #expect(outgoing(list, limit: 102, unused: .seconds(60 * 86_400)) == [0, 1])
    }

    @Test
    func `where everything comes by itself nothing goes for its age, but for the limit`() {
        let list: [(days: Int64, bytes: Int64)] = [(900, 5), (1, 96)]
        #expect(outgoing(list, unused: .seconds(60), greedy: true) == [])
        #expect(outgoing(list, limit: 100, unused: .seconds(60), greedy: true) == [0, 1])
    }

    @Test
    func `how long something stays is known`() {
        var rules = KeepingRules()
        #expect(rules.remaining(of: now, at: now) == nil)
        rules.unusedLimit = .seconds(10)
        #expect(rules.remaining(of: now, at: now) == .seconds(10))
        #expect(rules.remaining(of: Timestamp(nanoseconds: now.nanoseconds - 4_000_000_000), at: now) == .seconds(6))
        #expect(rules.remaining(of: Timestamp(nanoseconds: 0), at: now) == .zero)
    }
}

/// What comes by itself, as far as there is room.
struct FetchingRoomTests {
    private func room(limit: Int64? = nil, local: Int64 = 0, underWay: Int64 = 0, free: Int64 = 1 << 40) -> FetchingRoom
    {
        var room = FetchingRoom()
        room.rules.limitBytes = limit
        room.localBytes = local
        room.underWay = underWay
        room.freeBytes = free
        room.diskBytes = 1 << 40
        return room
    }

    @Test
    func `a part of the disk stays free, with all that is under way`() {
        let reserve = FetchingRoom.reserve(ofDisk: 1 << 40)
        #expect(room(free: reserve + 10).obstacle(to: 10, isPinned: false) == nil)
        #expect(room(free: reserve + 10).obstacle(to: 11, isPinned: true) == .disk)
        #expect(room(underWay: 5, free: reserve + 10).obstacle(to: 6, isPinned: false) == .disk)
        #expect(room().obstacle(to: .max, isPinned: false) == .disk)
    }

    @Test
    func `small and large disks keep a reserve that makes sense`() {
        #expect(FetchingRoom.reserve(ofDisk: 100 << 20) == 24 << 20)
        #expect(FetchingRoom.reserve(ofDisk: 20 << 30) == 1 << 30)
        #expect(FetchingRoom.reserve(ofDisk: 1 << 50) == 4 << 30)
    }

    @Test
    func `greediness ends below the limit, and what is pinned comes whatever it is`() {
        #expect(room(limit: 100, local: 85).obstacle(to: 10, isPinned: false) == nil)
        #expect(room(limit: 100, local: 85).obstacle(to: 11, isPinned: false) == .limit)
        #expect(room(limit: 100, local: 85, underWay: 1).obstacle(to: 10, isPinned: false) == .limit)
        #expect(room(limit: 100, local: 85).obstacle(to: 50, isPinned: true) == nil)
    }

    @Test
    func `what greediness brings begins no eviction`() {
        for limit in [Int64(1 << 20), 1_000_001, 20 << 30] {
            var rules = KeepingRules()
            rules.limitBytes = limit
            let largest = rules.targetBytes ?? 0
            #expect(room(limit: limit).obstacle(to: largest, isPinned: false) == nil)
            let content = KeptContent(id: ItemID(high: 0, low: 1), bytes: largest, lastUsed: Timestamp(nanoseconds: 0))
            #expect(rules.outgoing([content], localBytes: largest, at: Timestamp(nanoseconds: 1)) == [])
        }
    }
}
