import Testing
import UbiquityModel

@testable import EngineCore

@Suite struct HeldMarksTests {
    private struct Failure: Error {}

    /// What the database has, and what it was told.
    private struct Stored {
        var items: Set<ItemID> = []
        var writes: [(isHeld: Bool, items: [ItemID])] = []
        var fails = false

        mutating func write(_ isHeld: Bool, _ changed: [ItemID]) throws {
            if fails { throw Failure() }
            writes.append((isHeld, changed))
            if isHeld { items.formUnion(changed) } else { items.subtract(changed) }
        }
    }

    private let items = (1...6).map { ItemID(number: $0) }

    @Test func `only what has changed is written`() throws {
        var marks = HeldMarks()
        var stored = Stored(items: Set(items[0..<4]))
        try marks.write(items[4...], held: Set(items)) { try stored.write($0, $1) }
        #expect(stored.writes.map(\.isHeld) == [true])
        #expect(stored.writes.first?.items == Array(items[4...]))
        try marks.write(items[..<2], held: Set(items[2...])) { try stored.write($0, $1) }
        #expect(stored.writes.map(\.isHeld) == [true, false])
        #expect(stored.writes.last?.items == Array(items[..<2]))
        #expect(stored.items == Set(items[2...]))
    }

    @Test func `where nothing has changed nothing is written`() throws {
        var marks = HeldMarks()
        var stored = Stored()
        try marks.write([ItemID](), held: Set(items)) { try stored.write($0, $1) }
        #expect(stored.writes.isEmpty)
    }

    @Test func `what could not be written is written with the next, as it is by then`() throws {
        var marks = HeldMarks()
        var stored = Stored(items: Set(items[..<1]), fails: true)
        #expect(throws: Failure.self) {
            try marks.write(items[1..<3], held: Set(items[..<3])) { try stored.write($0, $1) }
        }
        // The first is released, and one of those that are not written yet as well.
        #expect(throws: Failure.self) {
            try marks.write(items[..<2], held: [items[2]]) { try stored.write($0, $1) }
        }
        stored.fails = false
        try marks.write([items[3]], held: [items[2], items[3]]) { try stored.write($0, $1) }
        #expect(stored.items == [items[2], items[3]])
        #expect(marks.unwritten.isEmpty)
    }
}
