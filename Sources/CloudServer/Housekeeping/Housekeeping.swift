internal import CatalogModel
internal import CatalogStore
internal import ChunkStore
internal import Logging
internal import Reconciliation
internal import ServiceLifecycle
internal import UbiquityModel

/// Once a day: thins saved versions, forgets what was deleted too long ago, and gives back the room of what nothing refers to any more
/// (architecture section 6, semantics sections 4 and 7).
///
/// The clock may be wrong, and be put right when somebody notices: ages grow by steps of two days at most, an hour apart, whatever it says.
///
/// All of it may end at any point, and goes on the next time.
struct Housekeeping: Service {
    let catalog: any HousekeptCatalog
    let chunks: any ChunkStore
    var rules = RetentionRules.standard
    let now: @Sendable () -> Timestamp
    let logger: Logger

    private static let interval: Duration = .days(1)
    private static let longestStep: Duration = .days(2)
    private static let betweenSteps: Duration = .hours(1)
    /// After so many steps in a row, more than any age of the rules, whatever was there when the clock leapt is as old as it gets. The rest,
    /// which may be decades after a time in 1970, is counted at once.
    private static let mostSteps: Int64 = 200
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
        let count = try await count(start)
        let next: Result<Timestamp, any Error>
        do {
            next = .success(try await count.due <= start ? discard(start, countedTo: count.time) : count.due)
        } catch {
            next = .failure(error)
        }
        // Also when that has failed: on a full disk it is what makes room.
        let packs = try await clearPacks(count.time, isBehind: count.time < start)
        return min(try next.get(), start.after(count.time.age(at: packs)))
    }

    // MARK: Time

    /// Where a round begins.
    private struct Count {
        /// Up to then ages count. It may be before what the clock says.
        var time: Timestamp
        /// When something is discarded again, by the clock.
        var due: Timestamp
    }

    private func count(_ start: Timestamp) async throws -> Count {
        let known = try await time(of: .done)
        catalog.keepTimes(from: max(known ?? start, start))
        guard let last = known else {
            // A new server, or a new version of it: nothing is old yet.
            try await set(.done, start)
            try await set(.counted, start)
            return Count(time: start, due: start.after(Self.interval))
        }
        guard last <= start else {
            try await unlessFull { try await believe(start) }
            return Count(time: try await time(of: .counted) ?? start, due: start.after(Self.interval))
        }
        if try await time(of: .behind) != nil { try await unlessFull { try await set(.behind, nil) } }
        let counted = min(try await time(of: .counted) ?? last, last)
        let due = last.after(counted < last ? Self.betweenSteps : Self.interval)
        guard due <= start else { return Count(time: counted.after(last.age(at: start)), due: due) }
        let isStep = try await number(of: .steps) ?? 0 < Self.mostSteps
        return Count(time: isStep ? min(start, counted.after(Self.longestStep)) : start, due: due)
    }

    /// The clock says less than it has said before. It is behind, as that of a machine may be that was without power, or has been put right
    /// after it was ahead: what a server has run with for a day is believed.
    private func believe(_ start: Timestamp) async throws {
        guard let noticed = try await time(of: .behind), noticed <= start else { return try await set(.behind, start) }
        guard noticed.age(at: start) >= Self.interval else { return }
        catalog.keepTimes(from: start)
        // What was noted by the clock as it was would wait until it says so again.
        try await catalog.notAfter(start)
        try await lower(.deleted, to: start.before(rules.deleted))
        try await lower(.counted, to: start)
        try await set(.steps, nil)
        try await set(.done, start)
        try await set(.behind, nil)
    }

    /// What cannot be noted on a full disk is in a later round: this one goes on to what makes room.
    private func unlessFull(_ body: () async throws -> Void) async throws {
        do { try await body() } catch CatalogError.noSpace {
            logger.warning("the disk is full: what the clock says could not be noted")
        }
    }

    // MARK: Versions and chunks

    /// - Returns: when it is due again.
    private func discard(_ start: Timestamp, countedTo time: Timestamp) async throws -> Timestamp {
        let (versions, chunks) = try await discard(start, time)
        // In this order: if it ends in between, less has been counted.
        try await set(.done, start)
        try await set(.counted, time)
        let steps = try await number(of: .steps)
        if time < start {
            if steps == nil {
                logger.notice("no versions were thinned for long, or the clock is wrong: they are by two days an hour")
            }
            try await set(.steps, (steps ?? 0) + 1)
        } else if steps != nil {
            try await set(.steps, nil)
        }
        if versions + chunks > 0 {
            logger.info("\(versions) versions and \(chunks) chunks are kept no longer")
        }
        return start.after(time < start ? Self.betweenSteps : Self.interval)
    }

    private func discard(_ start: Timestamp, _ time: Timestamp) async throws -> (versions: Int, chunks: Int) {
        var versions = 0
        // Devices are told of chunks by the clock: from `start` on that these are missing.
        let rules = rules.counting(to: time, at: start)
        try await walk { position in
            let page = try await catalog.discardVersions(rules, after: position, now: start)
            versions += page.discarded
            return page.next
        }
        let expired = time.before(rules.deleted)
        let former = try await self.time(of: .deleted) ?? Timestamp(nanoseconds: .min)
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
            let page = try await catalog.collectChunks(after: position, now: time)
            chunks += page.discarded
            if page.isDamaged, let container = page.next?.container {
                logger.error("the catalogue is damaged (a manifest): no chunks of container \(container) are collected")
            }
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
        /// Up to when ages have been counted then.
        case counted = "housekeeping-counted"
        /// In how many rounds that has not been all that the clock said.
        case steps = "housekeeping-steps"
        /// Since when the clock says less than that, by itself.
        case behind = "housekeeping-behind"
        /// What was deleted before is discarded.
        case deleted = "housekeeping-deleted"
    }

    private func number(of mark: Mark) async throws -> Int64? {
        try await catalog.setting(mark.rawValue).flatMap { Int64($0) }
    }

    private func set(_ mark: Mark, _ number: Int64?) async throws {
        try await catalog.set(mark.rawValue, to: number.map { "\($0)" } ?? "")
    }

    private func time(of mark: Mark) async throws -> Timestamp? {
        try await number(of: mark).map { Timestamp(nanoseconds: $0) }
    }

    private func set(_ mark: Mark, _ time: Timestamp) async throws { try await set(mark, time.nanoseconds) }

    private func lower(_ mark: Mark, to time: Timestamp) async throws {
        if let former = try await self.time(of: mark), former > time { try await set(mark, time) }
    }
}

extension RetentionRules {
    /// As if it were that time: ages that have grown by the rest are allowed for.
    fileprivate func counting(to time: Timestamp, at now: Timestamp) -> RetentionRules {
        let rest = time.age(at: now)
        var rules = self
        rules.everything += rest
        rules.steps = steps.map { Step(age: $0.age + rest, period: $0.period) }
        rules.resolved += rest
        rules.unwanted += rest
        return rules
    }
}
