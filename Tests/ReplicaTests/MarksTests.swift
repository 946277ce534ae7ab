import Replica
import TestSupport
import Testing
import UbiquityModel

/// Marks on items.
@Suite struct MarksTests {
    private let folder: ScratchFolder

    init() throws { folder = try ScratchFolder() }

    private func reopened() throws -> StateDatabase { try StateDatabase(path: folder.appending("state.db")) }

    @Test func `what was imported, held or confirmed is still so after a restart`() throws {
        let ids = (1...3).map { ItemID(high: 7, low: UInt64($0)) }
        do {
            let database = try reopened()
            try database.setImported(true, ids)
            try database.setHeld(true, Array(ids.prefix(2)))
            try database.setConfirmed(true, [ids[2]])
        }
        do {
            let database = try reopened()
            #expect(try database.imported() == Set(ids))
            #expect(try database.held() == Set(ids.prefix(2)))
            #expect(try database.confirmed() == [ids[2]])
            try database.setImported(false, Array(ids.dropFirst()))
            try database.setHeld(false, ids)
        }
        let database = try reopened()
        #expect(try database.imported() == [ids[0]])
        #expect(try database.held() == [] && database.confirmed() == [ids[2]])
    }

    @Test func `places that were found changed after a clean stop are so after a restart`() throws {
        let names: [[UInt8]] = [[0x61], [0xFF, 0x20], [0x62]]
        let places = try names.map { LocalPlace(folder: evidence(UInt64($0.count)).key, name: try Name(bytes: $0)) }
        do {
            let database = try reopened()
            try database.setUnwitnessed(true, places)
            try database.setUnwitnessed(true, [places[0]])
        }
        do {
            let database = try reopened()
            #expect(try Set(database.unwitnessed()) == Set(places))
            try database.setUnwitnessed(false, [places[0], places[1]])
        }
        #expect(try reopened().unwitnessed() == [places[2]])
    }

    @Test func `a database of the tenth version learns to keep what a further start has to know`() throws {
        do {
            let old = try reopened()
            try old.setImported(true, [ItemID(high: 7, low: 1)])
            try old.close()
        }
        try succeed(
            "sqlite3",
            folder.appending("state.db"),
            "DROP TABLE unwitnessed; DROP TABLE sentDeletions; PRAGMA user_version = 10;"
        )
        let database = try reopened()
        let place = LocalPlace(folder: evidence(1).key, name: try Name("f"))
        let sent = SentDeletion(operation: .random(), base: nil)
        try database.setUnwitnessed(true, [place])
        try database.write(sentDeletions: [(ItemID(high: 7, low: 1), sent)])
        #expect(try database.unwitnessed() == [place])
        #expect(try database.sentDeletions() == [ItemID(high: 7, low: 1): sent])
        #expect(try database.imported() == [ItemID(high: 7, low: 1)])
    }
}
