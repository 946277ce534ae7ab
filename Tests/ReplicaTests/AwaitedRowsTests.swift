import Dispatch
import Foundation
import Replica
import Synchronization
import Testing
import UbiquityModel

/// Rows that one thread writes while the one that reads in bursts goes on.
@Suite struct AwaitedRowsTests {
    /// What depends on a row, by how it is asked for.
    enum Question: CaseIterable, Sendable {
        case item, place, inode, children, subtree, page, pending, path

        /// - Returns: whether the row is there.
        func knows(_ row: SyncedItem, _ database: StateDatabase) throws -> Bool {
            switch self {
            case .item: try database.synced(row.id) == row
            case .place: try database.synced(at: row.place) == [row]
            case .inode: try database.synced(key: row.local?.key ?? evidence(0).key) == [row]
            case .children: try database.syncedChildren(of: row.place.parent).contains(row)
            case .subtree: try database.syncedSubtree(of: .root).contains(row)
            case .page: try database.syncedItems(after: nil, limit: 100).contains(row)
            case .pending: try !database.isDiffering(row.id)
            case .path: try database.syncedPath(of: row.id) != nil
            }
        }
    }

    let scratch: ScratchFolder
    let database: StateDatabase
    let row: SyncedItem
    let other: SyncedItem

    init() throws {
        scratch = try ScratchFolder()
        database = try StateDatabase(path: scratch.appending("state.sqlite"))
        let items = try [remoteFile(1, "awaited"), remoteFile(2, "other")]
        try database.write(remote: items, position: nil)
        row = SyncedItem(items[0], local: evidence(1))
        other = SyncedItem(items[1], local: evidence(2))
        try database.write(synced: [other])
    }

    @Test(arguments: Question.allCases) func `what depends on a row that is being written waits for it`(
        _ question: Question
    ) {
        let (database, row) = (database, row)
        let isKnown = whileWriting { mayWrite in
            mayWrite.signal()
            return try question.knows(row, database)
        }
        #expect(isKnown == true)
    }

    @Test func `all else is read at once`() {
        let (database, row, other) = (database, row, other)
        let isRight = whileWriting { mayWrite in
            let isRight =
                try database.synced(other.id) == other && database.synced(at: other.place) == [other]
                && database.synced(key: evidence(2).key) == [other] && database.remote(row.id)?.id == row.id
                && database.remote(at: row.place).map(\.id) == [row.id]
            mayWrite.signal()
            return try isRight && database.synced(row.id) == row
        }
        #expect(isRight == true)
    }

    @Test func `what is written later is not overtaken by it`() throws {
        let (database, row) = (database, row)
        var later = row
        later.attributes.mode = 0o600
        let isWritten = whileWriting { [later] mayWrite in
            mayWrite.signal()
            try database.write(synced: [later])
            return true
        }
        #expect(isWritten == true)
        #expect(try database.synced(row.id) == later)
    }

    @Test func `other threads see the row when it is there`() {
        let (database, row) = (database, row)
        let isRight = whileWriting { mayWrite in
            let asked = DispatchSemaphore(value: 0)
            let isThere = Mutex(true)
            Thread.detachNewThread {
                isThere.withLock { $0 = (try? database.synced(row.id)) != .some(nil) }
                asked.signal()
            }
            let hasAnswer = asked.wait(timeout: .now() + 20) == .success
            mayWrite.signal()
            return hasAnswer && !isThere.withLock { $0 }
        }
        #expect(isRight == true)
    }

    /// - Parameter body: on the thread that reads in bursts, while another one waits until it may write the row. That writes it when the first
    ///   one sleeps or has ended: whoever does not wait for the row is sooner.
    /// - Returns: what `body` does, when both have ended; `nil` if that hangs.
    private func whileWriting(_ body: @escaping @Sendable (DispatchSemaphore) throws -> Bool) -> Bool? {
        let (database, row) = (database, row)
        let answer = Mutex<Bool?>(nil)
        let answered = DispatchSemaphore(value: 0)
        let both = DispatchGroup()
        both.enter()
        both.enter()
        Thread.detachNewThread {
            let reader = ThisThread()
            database.readInBursts()
            _ = try? database.synced(row.id)
            database.expect([row])
            let mayWrite = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                mayWrite.wait()
                var left = 10_000
                while left > 0, answered.wait(timeout: .now() + .milliseconds(1)) == .timedOut, !reader.isAsleep {
                    left -= 1
                }
                try? database.write(synced: [row])
                database.expectedAreWritten()
                both.leave()
            }
            let result = try? body(mayWrite)
            answer.withLock { $0 = result }
            answered.signal()
            database.endReading()
            both.leave()
        }
        return both.wait(timeout: .now() + 60) == .success ? answer.withLock { $0 } : nil
    }

    /// The calling thread, for others to look at.
    private struct ThisThread: Sendable {
        private let folder = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")

        var isAsleep: Bool {
            guard let folder, let text = try? String(contentsOfFile: "/proc/\(folder)/stat", encoding: .utf8) else {
                return false
            }
            return text[(text.lastIndex(of: ")") ?? text.startIndex)...].hasPrefix(") S")
        }
    }
}
