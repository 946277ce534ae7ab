import EngineCore
import Testing
import UbiquityModel

@Suite struct TransferSlotsTests {
    private let items = (0..<8).map { number in ItemID(bytes: [UInt8](repeating: UInt8(number), count: 16)) }

    private func item(_ number: Int) throws -> ItemID { try #require(items[number]) }

    private func work(_ number: Int) throws -> Set<EngineCore.Work> { [.item(try item(number))] }

    @Test func `so many travel, and the others come in the order of their arrival`() throws {
        var slots = TransferSlots()
        for number in 0..<TransferSlots.limit { #expect(slots.begin(try item(number), try work(number))) }
        for number in [5, 4, 6] { #expect(!slots.begin(try item(number), try work(number))) }
        #expect(slots.next() == [])
        slots.end(try item(1))
        #expect(slots.next() == [.item(try item(5))])
        // Nobody else is told before that one has begun, or has had no use for it.
        #expect(slots.begin(try item(5), try work(5)))
        #expect(slots.next() == [])
        slots.end(try item(0))
        slots.end(try item(2))
        #expect(slots.next() == [.item(try item(4)), .item(try item(6))])
    }

    @Test func `who has no use for a place leaves it to the next`() throws {
        var slots = TransferSlots()
        for number in 0..<TransferSlots.limit { _ = slots.begin(try item(number), try work(number)) }
        for number in [4, 5] { _ = slots.begin(try item(number), try work(number)) }
        slots.end(try item(0))
        #expect(slots.next() == [.item(try item(4))])
        #expect(slots.next() == [.item(try item(5))])
        #expect(slots.next() == [])
    }

    @Test func `all that led to an item is told, and an item has one place`() throws {
        var slots = TransferSlots()
        for number in 0..<TransferSlots.limit { _ = slots.begin(try item(number), try work(number)) }
        #expect(!slots.begin(try item(4), try work(4)))
        #expect(!slots.begin(try item(4), try work(5)))
        slots.end(try item(0))
        #expect(slots.next() == [.item(try item(4)), .item(try item(5))])
        #expect(slots.next() == [])
        // What travels already may go on.
        #expect(slots.begin(try item(1), try work(1)))
    }
}
