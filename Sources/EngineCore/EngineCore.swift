package import UbiquityModel

/// The engine's decisions about *when*: what is examined, sent and applied next, what waits and for how long, and what the
/// connection does. A state machine without I/O, clock or randomness: events in, effects out. (What is done about one item is
/// decided by `Planner`.) The device service and the simulator drive the same code.
package struct EngineCore: Sendable {
    /// Something to examine: a place in the backing tree that a program changed, or an item whose remote state differs.
    package enum Work: Hashable, Sendable, Comparable {
        case item(ItemID)
        case place(LocalPlace)
    }

    package enum Connection: Hashable, Sendable {
        /// The user switched the device offline, or nothing has started yet.
        case off
        /// Not connected; tries again at the moment given.
        case waiting(until: Instant)
        case connecting
        /// Connected, but what others did meanwhile is still arriving.
        case listing
        case live
        /// The device was revoked or its account is gone: nothing is tried until the service is started anew.
        case refused
    }

    package enum Event: Sendable {
        case started
        case switched(offline: Bool)
        /// - Parameter jitter: in 0..<1, spreads the devices' next attempts.
        case connectionLost(jitter: Double)
        case connectionRefused
        /// Somebody waits for the server: the next attempt is made a little sooner.
        case connectionWanted
        case connected
        case caughtUp
        /// A program changed something. `isOpen`: a writer still has it open.
        case changed(LocalPlace, isOpen: Bool)
        /// Remote rows differ from synced ones: there is something to load from the database.
        case remoteChanged
        /// The pending items asked for by `loadPending`; `isLast` when no more are there.
        case pendingLoaded([ItemID], isLast: Bool)
        /// They could not be loaded.
        case pendingFailed
        case passEnded([Work: Verdict])
        /// A long transfer that a pass had left running has ended.
        case transferEnded(Work, Verdict)
        case timer
        /// What made this work wait has gone: a writer closed the file, a claim ended, content arrived.
        case woken(Work)
        /// This work has to be done by then, if it is not under way.
        case due(Work, after: Duration)
        /// `sync` asks that everything goes now, whatever quiet periods say.
        case hurried
    }

    /// What came of one piece of work.
    package enum Verdict: Hashable, Sendable {
        case done
        /// A change was sent: if the same place changes again soon, it waits a little longer each time.
        case sent
        /// Something moved meanwhile: examine it again at once, or at growing intervals if that goes on.
        case again
        /// Its folder turned out to be another item: as `again`, but before whatever else is ready. Of an import's files each would be looked at in
        /// vain otherwise, if its folder came after it.
        case next
        /// Not now: a writer has it open, it has not been quiet, a claim is held, its folder is not there yet.
        case later(Duration)
        /// It failed; tried again at growing intervals.
        case failed
        /// A long transfer goes on for it; `transferEnded` will follow.
        case transferring
        /// Waits for somebody's decision (a held deletion) or cannot be done here at all: not tried again by itself.
        case parked
    }

    package enum Effect: Hashable, Sendable {
        case connect
        case disconnect
        case setTimer(Instant)
        case loadPending
        case runPass([Work])
        /// Everything is sent and applied.
        case settled
    }

    /// Long enough that a program's temporary file is gone again, short enough that nobody notices.
    package static var closeDelay: Duration { .milliseconds(3) }
    /// A file that stays open is sent when it has been quiet for this long.
    package static var quietPeriod: Duration { .seconds(2) }
    /// When a package is looked at again in which a file stays open for writing, should nobody tell of its closing.
    package static var openPackagePause: Duration { .seconds(10) }
    /// When something under a claim is looked at again, should nobody tell of the claim's end.
    package static var claimPause: Duration { .seconds(30) }
    /// The longest interval for an item that keeps changing.
    package static var longestInterval: Duration { .seconds(30) }
    package static var passLimit: Int { 512 }
    /// How often a page of what others have changed comes in between while there is always something to do here.
    package static var pendingInterval: Duration { .seconds(1) }
    private static var pauseAfterFailure: Duration { .seconds(5) }
    /// From so much work on that waits, it does not.
    private static var mostWaiting: Int { 100_000 }
    /// However many wait for it.
    private static var wantedDelay: Duration { .milliseconds(200) }
    /// A connection that lasts so long is one.
    private static var provenTime: Duration { .seconds(5) }
    /// So often in a row work is examined again at once; after that it is something that lasts.
    private static var repeatLimit: Int { 8 }

    package private(set) var connection = Connection.off
    private var hasStarted = false
    /// What the user wants, which may be known before the start.
    private var isSwitchedOff = false
    private var attempts = 0
    /// When all was caught up with; `nil` while there is no connection.
    private var liveSince: Instant?
    /// When the connection was lost, or the last attempt failed.
    private var lostAt = Instant.start
    private var queue = WorkQueue<Work>()
    private var inPass: Set<Work> = []
    /// The same, in the order in which it was taken: that of a set is not the same in two runs, and the queue's must be.
    private var orderInPass: [Work] = []
    /// Changed again while a pass or a transfer had it; the value says whether it was open.
    private var changedMeanwhile: [Work: Bool] = [:]
    /// What it would have waited for came while a pass had it.
    private var wokenMeanwhile: Set<Work> = []
    /// Somebody who wants all of it tried anew came while a pass was running: why something cannot be done may have been said before.
    private var wasHurriedMeanwhile = false
    private var transferring: Set<Work> = []
    /// Transfers that ended before the pass that had begun them.
    private var endedEarly: [Work: Verdict] = [:]
    private var parked: Set<Work> = []
    private var failures: [Work: Int] = [:]
    /// How often in a row something had moved meanwhile.
    private var repeats: [Work: Int] = [:]
    private var rhythm: [LocalPlace: Rhythm] = [:]
    /// From how many on those are looked for that have long been quiet.
    private var rhythmLimit = Self.leastRhythmLimit
    private static var leastRhythmLimit: Int { 10_000 }
    private var pendingMayBeLoaded = false
    /// While there is always something else to do: when the next page of what differs is loaded all the same.
    private var pendingDue: Instant?
    /// More came while the pending items were being read page by page: they are read once more from the start.
    private var pendingChangedMeanwhile = false
    private var isLoadingPending = false
    /// When the pending items are loaded again that could not be.
    private var pendingPause: Instant?
    private var timer: Instant?
    private var wasSettled = true

    /// How often a place has been sent lately.
    private struct Rhythm: Sendable {
        var lastSent: Instant
        var interval: Duration
    }

    package init() {}

    // MARK: What others ask

    /// Nothing waits, runs or is on its way, apart from what is parked.
    package var isSettled: Bool { queue.isEmpty && isSettledButForWaiting }

    /// The same, but for what is to be looked at later.
    package var isSettledButForWaiting: Bool {
        connection == .live && inPass.isEmpty && transferring.isEmpty && !pendingMayBeLoaded && !isLoadingPending
    }

    package var parkedCount: Int { parked.count }
    package var parkedWork: [Work] { Array(parked) }
    package var waitingCount: Int { queue.count + inPass.count + transferring.count }

    package func isWaiting(_ work: Work) -> Bool { queue.contains(work) || inPass.contains(work) }
    package func isTransferring(_ work: Work) -> Bool { transferring.contains(work) }
    package func hasFailed(_ work: Work) -> Bool { failures[work] != nil }
    func isParked(_ work: Work) -> Bool { parked.contains(work) }
    func isUnderWay(_ work: Work) -> Bool { inPass.contains(work) || transferring.contains(work) }
    func readyMoment(of work: Work) -> Instant? { queue.readyAt(work) }
    /// It failed before, or waits for something to happen.
    package func isHeldUp(_ work: Work) -> Bool { hasFailed(work) || parked.contains(work) }
    package var holdsUp: Bool { !failures.isEmpty || !parked.isEmpty }

    /// What the next pass will have, as far as that is known by now.
    package func upcoming(at now: Instant) -> [Work] { queue.upcoming(at: now, limit: Self.passLimit) }

    /// Everything that is not done, for `sync` to name.
    package var unfinished: [Work] { Array(queue.keys) + Array(inPass) + Array(transferring) }

    package var hasUnfinished: Bool { !queue.isEmpty || !inPass.isEmpty || !transferring.isEmpty }

    /// Without a list of all of it, which may be long.
    package func isAllUnfinished(_ condition: (Work) -> Bool) -> Bool {
        queue.keys.allSatisfy(condition) && inPass.allSatisfy(condition) && transferring.allSatisfy(condition)
    }

    // MARK: Events

    package mutating func handle(_ event: Event, at now: Instant) -> [Effect] {
        var effects = [Effect]()
        switch event {
        case .started:
            hasStarted = true
            pendingMayBeLoaded = true
            connectIfWanted(&effects)
        case .switched(let offline):
            isSwitchedOff = offline
            if !offline {
                connectIfWanted(&effects)
            } else if hasStarted {
                connection = .off
                effects.append(.disconnect)
            }
        case .connectionLost(let jitter):
            guard connection != .off, connection != .refused else { break }
            // A server that takes a session and then no commit is no better than one that is not reached.
            if let since = liveSince, now - since >= Self.provenTime { attempts = 0 }
            liveSince = nil
            connection = .waiting(until: now + reconnectDelay(jitter: jitter))
            lostAt = now
            attempts += 1
        case .connectionRefused:
            connection = .refused
        case .connectionWanted:
            guard case .waiting(let moment) = connection else { break }
            connection = .waiting(until: min(moment, max(now, lostAt + Self.wantedDelay)))
        case .connected:
            guard connection == .connecting else { break }
            connection = .listing
        case .caughtUp:
            guard connection == .listing else { break }
            connection = .live
            liveSince = now
            retryFailuresNow(at: now)
        case .changed(let place, let isOpen):
            changed(place, isOpen: isOpen, at: now)
        case .remoteChanged:
            if pendingMayBeLoaded { pendingChangedMeanwhile = true }
            pendingMayBeLoaded = true
        case .pendingLoaded(let items, let isLast):
            isLoadingPending = false
            if isLast {
                pendingMayBeLoaded = pendingChangedMeanwhile
                pendingChangedMeanwhile = false
            }
            for item in items { add(.item(item), at: now) }
        case .pendingFailed:
            isLoadingPending = false
            pendingPause = now + Self.pauseAfterFailure
        case .passEnded(let verdicts):
            for work in orderInPass { finish(work, verdicts[work] ?? .again, at: now) }
            inPass.removeAll()
            orderInPass.removeAll()
            wokenMeanwhile.removeAll()
            wasHurriedMeanwhile = false
        case .transferEnded(let work, let verdict):
            if transferring.remove(work) != nil {
                finish(work, verdict, at: now)
            } else if inPass.contains(work) {
                endedEarly[work] = verdict
            }
        case .timer:
            timer = nil
            if case .waiting(let moment) = connection, moment <= now {
                connection = .connecting
                effects.append(.connect)
            }
        case .woken(let work):
            if parked.remove(work) != nil || queue.contains(work) {
                tryNow(work, at: now)
            } else if inPass.contains(work) {
                wokenMeanwhile.insert(work)
            }
        case .due(let work, let delay):
            guard !inPass.contains(work), !transferring.contains(work) else { break }
            parked.remove(work)
            queue.set(work, readyAt: min(queue.readyAt(work) ?? now + delay, now + delay))
        case .hurried:
            if case .waiting = connection {
                connection = .connecting
                effects.append(.connect)
            }
            for key in queue.waiting(at: now).sorted() where failures[key] == nil || connection == .live {
                tryNow(key, at: now)
            }
            for key in parked.sorted() { queue.set(key, readyAt: now) }
            parked.removeAll()
            rhythm.removeAll()
            wasHurriedMeanwhile = !inPass.isEmpty
        }
        effects.append(contentsOf: proceed(at: now))
        return effects
    }

    private mutating func connectIfWanted(_ effects: inout [Effect]) {
        guard hasStarted, !isSwitchedOff, connection == .off else { return }
        connection = .connecting
        attempts = 0
        effects.append(.connect)
    }

    private mutating func proceed(at now: Instant) -> [Effect] {
        var effects = [Effect]()
        if connection == .live {
            if inPass.isEmpty {
                let ready = queue.takeReady(at: now, limit: Self.passLimit)
                if !ready.isEmpty {
                    inPass = Set(ready)
                    orderInPass = ready
                    effects.append(.runPass(ready))
                }
                if pendingMayBeLoaded, !isLoadingPending, pendingPause.map({ $0 <= now }) ?? true,
                    ready.isEmpty || isPendingDue(at: now)
                {
                    isLoadingPending = true
                    pendingPause = nil
                    pendingDue = nil
                    effects.append(.loadPending)
                }
            }
            if isSettled != wasSettled {
                wasSettled = isSettled
                if wasSettled { effects.append(.settled) }
            }
        }
        if let moment = nextMoment(), timer.map({ moment < $0 || $0 <= now }) ?? true {
            timer = moment
            effects.append(.setTimer(moment))
        }
        return effects
    }

    /// What others have changed comes when there is nothing else to do, and otherwise a page of it from time to time: there may always be
    /// something, while very much goes up. Not where so much waits already that it would only be remembered twice.
    private mutating func isPendingDue(at now: Instant) -> Bool {
        guard let due = pendingDue else {
            pendingDue = now + Self.pendingInterval
            return false
        }
        return due <= now && queue.count < Self.mostWaiting
    }

    private mutating func nextMoment() -> Instant? {
        switch connection {
        case .waiting(let moment): moment
        case .live: inPass.isEmpty ? [queue.nextReady(), pendingPause].compactMap { $0 }.min() : nil
        case .off, .connecting, .listing, .refused: nil
        }
    }

    // MARK: Work

    private mutating func changed(_ place: LocalPlace, isOpen: Bool, at now: Instant) {
        let work = Work.place(place)
        if !inPass.isEmpty && inPass.contains(work) || !transferring.isEmpty && transferring.contains(work) {
            changedMeanwhile[work] = isOpen
            return
        }
        if !parked.isEmpty { parked.remove(work) }
        if !failures.isEmpty { failures[work] = nil }
        queue.set(work, readyAt: dueMoment(place, isOpen: isOpen, at: now))
    }

    private func dueMoment(_ place: LocalPlace, isOpen: Bool, at now: Instant) -> Instant {
        let delay = isOpen ? Self.quietPeriod : Self.closeDelay
        guard let rhythm = rhythm[place] else { return now + delay }
        return max(now + delay, rhythm.lastSent + rhythm.interval)
    }

    private mutating func add(_ work: Work, at now: Instant) {
        guard !inPass.contains(work), !transferring.contains(work), !queue.contains(work), !parked.contains(work) else {
            return
        }
        queue.set(work, readyAt: now)
    }

    private mutating func finish(_ work: Work, _ verdict: Verdict, at now: Instant) {
        if verdict != .again, verdict != .next, !repeats.isEmpty { repeats[work] = nil }
        switch verdict {
        case .done:
            if !failures.isEmpty { failures[work] = nil }
        case .sent:
            if !failures.isEmpty { failures[work] = nil }
            if case .place(let place) = work { noteSent(place, at: now) }
        case .again, .next:
            let count = (repeats[work] ?? 0) + 1
            repeats[work] = count
            let delay =
                count <= Self.repeatLimit ? .zero : Duration.milliseconds(10) * (1 << min(count - Self.repeatLimit, 10))
            queue.set(work, readyAt: verdict == .next && delay == .zero ? .start : now + delay)
        case .later, .parked:
            if wasHurriedMeanwhile || wokenMeanwhile.contains(work) {
                queue.set(work, readyAt: now)
            } else if case .later(let delay) = verdict {
                queue.set(work, readyAt: now + delay)
            } else {
                parked.insert(work)
            }
        case .failed:
            let count = (failures[work] ?? 0) + 1
            failures[work] = count
            let delay = Duration.milliseconds(500) * (1 << min(count - 1, 10))
            queue.set(work, readyAt: wasHurriedMeanwhile ? now : now + min(.seconds(300), delay))
        case .transferring:
            if let ended = endedEarly.removeValue(forKey: work) { return finish(work, ended, at: now) }
            transferring.insert(work)
        }
        if verdict != .transferring, !changedMeanwhile.isEmpty,
            let isOpen = changedMeanwhile.removeValue(forKey: work),
            case .place(let place) = work
        {
            parked.remove(work)
            let due = dueMoment(place, isOpen: isOpen, at: now)
            queue.set(work, readyAt: queue.readyAt(work).map { min($0, due) } ?? due)
        }
    }

    private mutating func noteSent(_ place: LocalPlace, at now: Instant) {
        if rhythm.count > rhythmLimit {
            rhythm = rhythm.filter { now - $0.value.lastSent < .seconds(60) }
            // Of many that are all new, not all are looked through again for each further one.
            rhythmLimit = max(Self.leastRhythmLimit, rhythm.count * 2)
        }
        if let last = rhythm[place], now - last.lastSent < max(last.interval * 4, .seconds(1)) {
            rhythm[place] = Rhythm(lastSent: now, interval: min(Self.longestInterval, last.interval * 2))
        } else {
            rhythm[place] = Rhythm(lastSent: now, interval: .milliseconds(20))
        }
    }

    private mutating func retryFailuresNow(at now: Instant) {
        for work in failures.keys.sorted() where queue.contains(work) { tryNow(work, at: now) }
    }

    /// Tries before its time what may have failed. That does not count: where a connection comes and goes within seconds, it would soon be
    /// tried every few minutes only.
    private mutating func tryNow(_ work: Work, at now: Instant) {
        if let count = failures[work], let moment = queue.readyAt(work), moment > now {
            failures[work] = max(0, count - 1)
        }
        queue.set(work, readyAt: now)
    }

    private func reconnectDelay(jitter: Double) -> Duration {
        let full = min(.seconds(30), .milliseconds(200) * (1 << min(attempts, 8)))
        return full * (0.5 + jitter / 2)
    }
}
