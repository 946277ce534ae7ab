import Driver
import EngineCore
import Logging
import Replica
import UbiquityModel

/// What of writing down happens beside the engine.
struct RecordingBeside {
    var isRunning = false
    /// The last one has failed: then the pass itself waits for it, and is told why.
    var isTroubled = false
    var waiters: [CheckedContinuation<Void, Never>] = []
}

/// Two devices that already hold the same files agree on thousands of them, a pass after the other. The next pass looks while the rows of the
/// last one are written: they are new and of files, and what depends on them waits for them (`StateDatabase.expect`), so that nobody sees
/// that they are late. Should the process end before they are written, equal content is agreement once more.
extension ContainerEngine {
    /// Fewer are written sooner than a thread has begun.
    private static let leastBeside = 64

    /// - Returns: what the pass waits for, and what is written beside the next one: nothing of which anybody else is told, or that has to be
    ///   done before something else.
    func split(_ record: PassRecord) throws -> (now: PassRecord, beside: SyncedChanges) {
        let changes = record.changes
        guard !recordingBeside.isTroubled, changes.upserts.count >= Self.leastBeside, changes.removals.isEmpty,
            changes.answered.isEmpty, record.answered.isEmpty, record.deletions.isEmpty, record.folders.isEmpty
        else { return (record, SyncedChanges()) }
        var beside = SyncedChanges()
        var now = record
        now.changes.upserts = []
        for row in changes.upserts {
            if try isOfNewFile(row) { beside.upserts.append(row) } else { now.changes.upserts.append(row) }
        }
        return beside.upserts.count < Self.leastBeside ? (record, SyncedChanges()) : (now, beside)
    }

    /// Whole, and of an item that had no row: nothing that was known of it becomes another.
    private func isOfNewFile(_ row: SyncedItem) throws -> Bool {
        guard row.content.kind == .file, let local = row.local, !local.isDataless else { return false }
        return try replica.database.synced(row.id) == nil
    }

    /// - Parameters:
    ///   - changes: of what is durable.
    ///   - places: where that is, among others.
    func writeBeside(_ changes: SyncedChanges, _ places: [LocalPlace]) {
        recordingBeside.isRunning = true
        let database = replica.database
        database.expect(changes.upserts)
        BlockingThread.start("ubi-record") {
            Workload.begin()
            let result = Result { try database.apply(changes) }
            Workload.end()
            database.expectedAreWritten()
            Task { await self.wroteBeside(places, result) }
        }
    }

    private func wroteBeside(_ places: [LocalPlace], _ result: Result<Void, any Error>) {
        recordingBeside.isRunning = false
        switch result {
        case .success: contentWatch.grew()
        case .failure(let error):
            logger.error("what was synced is not recorded", metadata: ["why": "\(error)"])
            recordingBeside.isTroubled = true
            // Without a row each of them is compared once more.
            for place in places { synchronizer.markScanned(place) }
        }
        for waiter in recordingBeside.waiters { waiter.resume() }
        recordingBeside.waiters = []
    }

    func recordingBesideEnds() async {
        while recordingBeside.isRunning { await withCheckedContinuation { recordingBeside.waiters.append($0) } }
    }
}
