import Synchronization
import UbiquityModel

/// Counts what travels, for `activity`, `status` and the states of items.
final class TransferMeter: Sendable {
    struct Entry: Sendable {
        var path: String
        var direction: TransferStatus.Direction
        var bytesDone: Int64
        var bytesTotal: Int64
    }

    private struct State: Sendable {
        var entries: [UInt64: (item: ItemID, entry: Entry)] = [:]
        var nextToken: UInt64 = 0
        var sent: Int64 = 0
        var received: Int64 = 0
    }

    /// Guards memory only; a leaf in the order of locks.
    private let state = Mutex(State())

    func begin(_ item: ItemID, path: String, direction: TransferStatus.Direction, total: Int64) -> UInt64 {
        state.withLock { state in
            state.nextToken += 1
            state.entries[state.nextToken] = (
                item, Entry(path: path, direction: direction, bytesDone: 0, bytesTotal: total)
            )
            return state.nextToken
        }
    }

    func advance(_ token: UInt64, by bytes: Int64) {
        state.withLock { $0.entries[token]?.entry.bytesDone += bytes }
    }

    func end(_ token: UInt64) { state.withLock { $0.entries[token] = nil } }

    func countSent(_ bytes: Int64) { state.withLock { $0.sent += bytes } }
    func countReceived(_ bytes: Int64) { state.withLock { $0.received += bytes } }

    var totals: (sent: Int64, received: Int64) { state.withLock { ($0.sent, $0.received) } }

    func transfer(of item: ItemID) -> Entry? {
        state.withLock { state in state.entries.values.first { $0.item == item }?.entry }
    }

    var all: [TransferStatus] {
        state.withLock { state in
            state.entries.sorted { $0.key < $1.key }.map { _, value in
                TransferStatus(
                    path: value.entry.path,
                    direction: value.entry.direction,
                    bytesDone: value.entry.bytesDone,
                    bytesTotal: value.entry.bytesTotal
                )
            }
        }
    }
}
