import Replica
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
}
