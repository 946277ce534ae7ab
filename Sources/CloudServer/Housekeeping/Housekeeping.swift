internal import CatalogModel
internal import ChunkStore
internal import Logging
internal import Reconciliation
internal import ServiceLifecycle
internal import UbiquityModel

/// Once a day: thins saved versions, forgets what was deleted too long ago, and gives back the room of what nothing refers to any more
/// (architecture section 6, semantics sections 4 and 7).
///
/// All of it may end at any point, and goes on the next time.
struct Housekeeping: Service {
    let catalog: any PackCatalog
    let chunks: any ChunkStore
    var rules = RetentionRules.standard
    let now: @Sendable () -> Timestamp
    let logger: Logger

    private static let interval: Duration = .days(1)
    /// If the clock says that nothing was done for longer, it may be the clock that is wrong: whoever notices has an hour for it.
    private static let longestPause: Duration = .days(7)
    private static let pauseForDoubts: Duration = .hours(1)
    /// After a failure: a full disk, say.
    private static let retry: Duration = .hours(1)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let start = now()
                var next = start.after(Self.retry)
                do { next = try await round() } catch {
                    if Task.isCancelled { return }
                    logger.warning("what is kept no longer could not be removed: \(error)")
                }
                let pause = max(.seconds(60), start.age(at: next))
                try? await Task.sleep(for: pause)
            }
        }
    }

    /// Does what is due. Returns when there is something to do again.
    func round() async throws -> Timestamp {
        let start = now()
        let next = try await discardIfDue(start)
        return min(next, try await clearPacks(start))
    }

    // MARK: Versions and chunks

    private func discardIfDue(_ start: Timestamp) async throws -> Timestamp {
        let known = try await time(of: .done)
        catalog.keepTimes(from: max(known ?? start, start))
        guard let last = known else {
            // A new server, or a new version of it: nothing is old yet.
            try await set(.done, start)
            return start.after(Self.interval)
        }
        guard last <= start else {
            try await believe(start)
            return start.after(Self.interval)
        }
        if try await time(of: .behind) != nil { try await set(.behind, nil) }
        let due = last.after(Self.interval)
        guard due <= start else { return due }
        if last.age(at: start) > Self.longestPause {
            logger.notice("no versions were thinned for long, or the clock is wrong: they will be in an hour")
            let next = start.after(Self.pauseForDoubts)
            try await set(.done, next.before(Self.interval))
            return next
        }
        let (versions, chunks) = try await discard(start)
        try await set(.done, start)
        if versions + chunks > 0 {
            logger.info("\(versions) versions and \(chunks) chunks are kept no longer")
        }
        return start.after(Self.interval)
    }

    /// The clock says less than it has said before. It is behind, as that of a machine may be that was without power, or has been put right
    /// after it was ahead: what a server has run with for a day is believed.
    private func believe(_ start: Timestamp) async throws {
        guard let noticed = try await time(of: .behind), noticed <= start else { return try await set(.behind, start) }
        guard noticed.age(at: start) >= Self.interval else { return }
        catalog.keepTimes(from: start)
        try await set(.done, start)
        try await set(.behind, nil)
    }

    private func discard(_ start: Timestamp) async throws -> (versions: Int, chunks: Int) {
        var versions = 0
        try await walk { position in
            let page = try await catalog.discardVersions(rules, after: position, now: start)
            versions += page.discarded
            return page.next
        }
        let expired = start.before(rules.deleted)
        let former = try await time(of: .deleted) ?? Timestamp(nanoseconds: .min)
        if former < expired {
            try await walk { position in
                let page = try await catalog.discardDeleted(in: former..<expired, after: position, now: start)
                versions += page.discarded
                return page.next
            }
            try await set(.deleted, expired)
        }
        while try await catalog.discardContainers(removedBefore: expired) { try Task.checkCancellation() }
        var chunks = 0
        try await walk { position in
            let page = try await catalog.collectChunks(after: position, now: start)
            chunks += page.discarded
            return page.next
        }
        return (versions, chunks)
    }

    private func walk<Position>(_ step: (Position?) async throws -> Position?) async throws {
        var position: Position?
        repeat {
            try Task.checkCancellation()
            position = try await step(position)
        } while position != nil
    }

    // MARK: What was done

    private enum Mark: String {
        /// When a round was done.
        case done = "housekeeping-done"
        /// Since when the clock says less than that, by itself.
        case behind = "housekeeping-behind"
        /// What was deleted before is discarded.
        case deleted = "housekeeping-deleted"
    }

    private func time(of mark: Mark) async throws -> Timestamp? {
        try await catalog.setting(mark.rawValue).flatMap { Int64($0) }.map { Timestamp(nanoseconds: $0) }
    }

    private func set(_ mark: Mark, _ time: Timestamp?) async throws {
        try await catalog.set(mark.rawValue, to: time.map { "\($0.nanoseconds)" } ?? "")
    }
}
