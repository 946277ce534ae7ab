import EngineCore
import Testing
import UbiquityModel

@Suite struct EngineCoreTests {
    private typealias Core = EngineCore

    private let place: LocalPlace

    init() throws {
        place = LocalPlace(folder: InodeKey(tag: 1, words: (1, 0, 0)), name: try Name("document"))
    }

    private func liveCore() -> Core {
        var core = Core()
        _ = core.handle(.started, at: .start)
        _ = core.handle(.connected, at: .start)
        _ = core.handle(.caughtUp, at: .start)
        _ = core.handle(.pendingLoaded([], isLast: true), at: .start)
        return core
    }

    private let later = Instant(.seconds(1))

    @Test func `a closed file is examined a moment after its change`() {
        var core = liveCore()
        #expect(core.handle(.changed(place, isOpen: false), at: .start) == [.setTimer(.start + Core.closeDelay)])
        #expect(core.handle(.timer, at: later) == [.runPass([.place(place)])])
    }

    @Test func `what others have changed comes although there is always something to do here`() throws {
        var core = liveCore()
        for number in 0..<2000 {
            let name = try Name("photo \(number)")
            _ = core.handle(.changed(LocalPlace(folder: place.folder, name: name), isOpen: false), at: .start)
        }
        var now = later
        var effects = core.handle(.timer, at: now)
        effects += core.handle(.remoteChanged, at: now)
        var loaded = 0
        // All are waiting for their turn to be sent, and one look at them takes longer than they wait.
        for _ in 0..<500 {
            let passes = effects.compactMap { if case .runPass(let works) = $0 { works } else { nil } }
            let pass = try #require(passes.first)
            now = now + .milliseconds(10)
            let verdicts = Dictionary(uniqueKeysWithValues: pass.map { ($0, Core.Verdict.later(.milliseconds(20))) })
            effects = core.handle(.passEnded(verdicts), at: now)
            guard effects.contains(.loadPending) else { continue }
            loaded += 1
            effects += core.handle(.pendingLoaded([], isLast: false), at: now)
        }
        #expect((3...6).contains(loaded), "\(loaded)")
    }

    /// Nobody loaded them again until others had changed something else.
    @Test func `what others have changed and cannot be read is read a little later, and until then nothing is settled`()
    {
        var core = liveCore()
        #expect(core.handle(.remoteChanged, at: later).contains(.loadPending))
        let effects = core.handle(.pendingFailed, at: later)
        #expect(!effects.contains(.settled) && !core.isSettled)
        #expect(effects.contains(.setTimer(later + .seconds(5))))
        #expect(!core.handle(.timer, at: later + .seconds(4)).contains(.loadPending))
        #expect(core.handle(.timer, at: later + .seconds(5)).contains(.loadPending))
        #expect(core.handle(.pendingLoaded([], isLast: true), at: later + .seconds(5)).contains(.settled))
    }

    @Test func `what is due by a moment is not done before, nor put off`() {
        var core = liveCore()
        _ = core.handle(.due(.place(place), after: .seconds(2)), at: .start)
        _ = core.handle(.due(.place(place), after: .seconds(5)), at: .start)
        #expect(!core.handle(.timer, at: later).contains(.runPass([.place(place)])))
        #expect(core.handle(.timer, at: .start + .seconds(2)) == [.runPass([.place(place)])])
        // What is under way looks at it anyway.
        _ = core.handle(.due(.place(place), after: .zero), at: .start + .seconds(2))
        _ = core.handle(.passEnded([.place(place): .done]), at: .start + .seconds(3))
        #expect(core.isSettled)
    }

    @Test func `somebody who waits does not wait for the next attempt to connect`() {
        var core = liveCore()
        _ = core.handle(.connectionLost(jitter: 0), at: .start)
        #expect(core.handle(.hurried, at: .start).contains(.connect))
        #expect(core.connection == .connecting)
    }

    @Test
    func `who wants something of a server that is not reached makes the next attempt sooner, and not more of them`() {
        var core = liveCore()
        var now = Instant.start
        for _ in 0..<8 {
            _ = core.handle(.connectionLost(jitter: 1), at: now)
            now = now + .seconds(31)
            _ = core.handle(.timer, at: now)
            #expect(core.connection == .connecting)
        }
        _ = core.handle(.connectionLost(jitter: 1), at: now)
        let soon = now + .milliseconds(200)
        #expect(core.handle(.connectionWanted, at: now) == [.setTimer(soon)])
        #expect(core.handle(.connectionWanted, at: now + .milliseconds(100)) == [])
        #expect(core.connection == .waiting(until: soon))
        let long = now + .seconds(5)
        _ = core.handle(.timer, at: soon)
        _ = core.handle(.connectionLost(jitter: 1), at: soon)
        #expect(core.handle(.connectionWanted, at: long) == [.setTimer(long)])
        #expect(core.handle(.timer, at: long).contains(.connect))
    }

    @Test func `a transfer that ends before the pass that began it is not waited for`() {
        var core = liveCore()
        _ = core.handle(.changed(place, isOpen: false), at: .start)
        _ = core.handle(.timer, at: later)
        _ = core.handle(.transferEnded(.place(place), .done), at: later)
        _ = core.handle(.passEnded([.place(place): .transferring]), at: later)
        #expect(core.isSettled)
    }

    @Test func `nothing is sent while nobody is connected, and all of it afterwards`() {
        var core = liveCore()
        _ = core.handle(.connectionLost(jitter: 0), at: .start)
        #expect(!core.handle(.changed(place, isOpen: false), at: .start).contains(.runPass([.place(place)])))
        #expect(core.handle(.timer, at: later).contains(.connect))
        _ = core.handle(.connected, at: later)
        #expect(core.handle(.caughtUp, at: later).contains(.runPass([.place(place)])))
    }

    @Test func `a change during a pass is looked at again`() {
        var core = liveCore()
        _ = core.handle(.changed(place, isOpen: false), at: .start)
        _ = core.handle(.timer, at: later)
        _ = core.handle(.changed(place, isOpen: false), at: later)
        _ = core.handle(.passEnded([.place(place): .sent]), at: later)
        #expect(!core.isSettled)
        #expect(core.isWaiting(.place(place)))
    }

    @Test(arguments: [EngineCore.Verdict.parked, .later(.seconds(1000))])
    func `what is woken while a pass has it is not put away for it`(verdict: EngineCore.Verdict) {
        var core = liveCore()
        _ = core.handle(.changed(place, isOpen: false), at: .start)
        _ = core.handle(.timer, at: later)
        _ = core.handle(.woken(.place(place)), at: later)
        #expect(core.handle(.passEnded([.place(place): verdict]), at: later) == [.runPass([.place(place)])])
        // Only once.
        _ = core.handle(.passEnded([.place(place): verdict]), at: later)
        #expect(core.parkedCount == (verdict == .parked ? 1 : 0))
        #expect(core.isWaiting(.place(place)) == (verdict != .parked))
    }

    @Test func `when something is tried again is known`() {
        var core = liveCore()
        let work = Core.Work.place(place)
        let item = Core.Work.item(ItemID(number: 1))
        #expect(core.retry(of: [work, item], at: later) == nil)
        _ = core.handle(.changed(place, isOpen: false), at: .start)
        _ = core.handle(.timer, at: later)
        #expect(core.retry(of: [item, work], at: later) == nil)
        var now = later
        for delay in [Duration.milliseconds(500), .seconds(1), .seconds(2)] {
            _ = core.handle(.passEnded([work: .failed]), at: now)
            #expect(core.retry(of: [item, work], at: now) == .after(delay))
            now = now + delay
            #expect(core.retry(of: [item, work], at: now) == .after(.zero))
            _ = core.handle(.timer, at: now)
        }
        _ = core.handle(.passEnded([work: .parked]), at: now)
        #expect(core.retry(of: [item, work], at: now) == .whenChanged)
        _ = core.handle(.changed(place, isOpen: false), at: now)
        _ = core.handle(.connectionLost(jitter: 0), at: now)
        #expect(core.retry(of: [item, work], at: now) == .whenConnected)
    }

    @Test(arguments: [
        (EngineCore.Retry.after(.milliseconds(900)), "at once"), (.after(.seconds(40)), "in 40 s"),
        (.after(.seconds(290)), "in 5 min"),
    ])
    func `when something is tried again is said`(retry: EngineCore.Retry, words: String) {
        #expect(retry.description == "tried again \(words)")
    }

    /// On a disk that failed for seconds it was tried minutes later only: each wake-up had counted as an attempt.
    @Test func `what fails each time that it is woken is tried again as soon as what fails by itself`() {
        var core = liveCore()
        _ = core.handle(.changed(place, isOpen: false), at: .start)
        _ = core.handle(.timer, at: later)
        _ = core.handle(.passEnded([.place(place): .failed]), at: later)
        for _ in 0..<20 {
            #expect(core.handle(.woken(.place(place)), at: later) == [.runPass([.place(place)])])
            _ = core.handle(.passEnded([.place(place): .failed]), at: later)
        }
        #expect(core.handle(.timer, at: later + .seconds(1)).contains(.runPass([.place(place)])))
    }

    /// `sync` said that all was in the cloud: it had forgotten why something was refused, and nobody said so again.
    @Test(arguments: [EngineCore.Verdict.parked, .failed, .later(.seconds(1000))])
    func `somebody who wants all tried anew while a pass runs has what it puts away tried once more`(
        verdict: EngineCore.Verdict
    ) {
        var core = liveCore()
        _ = core.handle(.changed(place, isOpen: false), at: .start)
        _ = core.handle(.timer, at: later)
        _ = core.handle(.hurried, at: later)
        #expect(core.handle(.passEnded([.place(place): verdict]), at: later) == [.runPass([.place(place)])])
        // Only once.
        #expect(!core.handle(.passEnded([.place(place): verdict]), at: later).contains(.runPass([.place(place)])))
    }

    /// It was tried every five minutes after a few seconds in which the connection had come and gone ten times.
    @Test func `what fails at each new connection is not tried the less often for it`() {
        var core = liveCore()
        let work = Core.Work.place(place)
        _ = core.handle(.changed(place, isOpen: false), at: .start)
        var now = later
        var effects = core.handle(.timer, at: now)
        for _ in 0..<20 {
            #expect(effects.contains(.runPass([work])))
            effects = core.handle(.passEnded([work: .failed]), at: now)
            #expect(effects.contains(.setTimer(now + .milliseconds(500))))
            _ = core.handle(.connectionLost(jitter: 0), at: now)
            _ = core.handle(.connectionWanted, at: now)
            now = now + .milliseconds(400)
            _ = core.handle(.timer, at: now)
            _ = core.handle(.connected, at: now)
            effects = core.handle(.caughtUp, at: now)
        }
    }

    /// It was connected to three times a second, each time with the same commit.
    @Test func `a server that takes a session and no commit is asked more and more seldom, until a connection lasts`() {
        var core = liveCore()
        var now = later
        func pauseAfterLoss() -> Duration? {
            _ = core.handle(.connectionLost(jitter: 1), at: now)
            guard case .waiting(let moment) = core.connection else { return nil }
            let pause = moment - now
            now = moment
            _ = core.handle(.timer, at: now)
            _ = core.handle(.connected, at: now)
            _ = core.handle(.caughtUp, at: now)
            return pause
        }
        let pauses = (0..<9).map { _ in pauseAfterLoss() }
        #expect(pauses.prefix(3) == [.milliseconds(200), .milliseconds(400), .milliseconds(800)])
        #expect(pauses.last == .seconds(30))
        now = now + .seconds(5)
        #expect(pauseAfterLoss() == .milliseconds(200))
    }

    /// It did when all that had been sent lately was looked through for each.
    @Test(.timeLimit(.minutes(1)))
    func `to send many files in a row does not take longer for each`() throws {
        var core = liveCore()
        for pass in 0..<300 {
            let now = Instant(.milliseconds(pass * 10))
            let works = try (0..<500).map { file in
                Core.Work.place(LocalPlace(folder: place.folder, name: try Name("\(pass)-\(file)")))
            }
            for case .place(let place) in works { _ = core.handle(.changed(place, isOpen: false), at: now) }
            _ = core.handle(.timer, at: now + Core.closeDelay)
            let sent = Dictionary(uniqueKeysWithValues: works.map { ($0, Core.Verdict.sent) })
            _ = core.handle(.passEnded(sent), at: now + Core.closeDelay)
        }
        #expect(core.isSettled)
    }

    @Test
    func `what moves again and again is looked at less and less often, and none the later once it has come to rest`() {
        var core = liveCore()
        let work = Core.Work.place(place)
        _ = core.handle(.changed(place, isOpen: false), at: .start)
        var now = later
        var effects = core.handle(.timer, at: now)
        var waits: [Duration] = []
        for _ in 0..<30 {
            #expect(effects == [.runPass([work])])
            effects = core.handle(.passEnded([work: .again]), at: now)
            guard case .setTimer(let moment) = effects.last else {
                waits.append(.zero)
                continue
            }
            waits.append(moment - now)
            now = moment
            effects = core.handle(.timer, at: now)
        }
        #expect(waits.prefix(8).allSatisfy { $0 == .zero })
        #expect(waits.sorted() == waits)
        #expect(waits.last.map { $0 > .seconds(5) && $0 < .seconds(30) } == true)
        // It is done, and what happens afterwards is another matter.
        _ = core.handle(.passEnded([work: .done]), at: now)
        _ = core.handle(.changed(place, isOpen: false), at: now)
        _ = core.handle(.timer, at: now + .seconds(1))
        #expect(core.handle(.passEnded([work: .again]), at: now + .seconds(1)) == [.runPass([work])])
    }

    /// The folders of an import, behind which all its files had come: each file was looked at twice.
    @Test func `what has another folder than it was thought to have goes before what waits already`() throws {
        var core = liveCore()
        let places = try (0..<Core.passLimit + 100).map {
            LocalPlace(folder: place.folder, name: try Name("\($0)"))
        }
        for place in places { _ = core.handle(.changed(place, isOpen: false), at: .start) }
        let first = places.prefix(Core.passLimit).map(Core.Work.place)
        #expect(core.handle(.timer, at: later) == [.runPass(first)])
        let again = Set(first.suffix(20))
        let verdicts = first.map { ($0, again.contains($0) ? Core.Verdict.next : .done) }
        let effects = core.handle(.passEnded(Dictionary(uniqueKeysWithValues: verdicts)), at: later)
        #expect(effects == [.runPass(first.suffix(20) + places.dropFirst(Core.passLimit).map(Core.Work.place))])
    }

    @Test func `what the next pass will have is known beforehand, and stays`() throws {
        var core = liveCore()
        let places = try (0..<1000).map {
            LocalPlace(folder: place.folder, name: try Name("\(String(repeating: "x", count: $0 % 7))\($0)"))
        }
        for place in places { _ = core.handle(.changed(place, isOpen: false), at: .start) }
        // One of them is looked at late.
        _ = core.handle(.changed(places[3], isOpen: true), at: .start)
        let works = places.map { Core.Work.place($0) }.filter { $0 != .place(places[3]) }
        #expect(core.handle(.timer, at: later) == [.runPass(Array(works[..<Core.passLimit]))])
        let next = core.upcoming(at: later)
        #expect(next == Array(works[Core.passLimit...]))
        #expect(core.upcoming(at: .start) == [])
        let done = Dictionary(uniqueKeysWithValues: works[..<Core.passLimit].map { ($0, Core.Verdict.done) })
        #expect(core.handle(.passEnded(done), at: later) == [.runPass(next)])
    }

    @Test func `a device that was offline before the start stays so, until it is switched on`() {
        var core = Core()
        #expect(core.handle(.switched(offline: true), at: .start) == [])
        #expect(!core.handle(.started, at: .start).contains(.connect))
        #expect(core.connection == .off)
        #expect(core.handle(.switched(offline: false), at: later).contains(.connect))
        #expect(core.connection == .connecting)
    }

    @Test func `a device that was switched on again before the start connects once it starts`() {
        var core = Core()
        _ = core.handle(.switched(offline: true), at: .start)
        #expect(!core.handle(.switched(offline: false), at: .start).contains(.connect))
        #expect(core.handle(.started, at: .start).contains(.connect))
    }
}

@Suite struct DeletionGuardTests {
    @Test(arguments: [
        (count: 60, total: 110, admits: false), (count: 50, total: 110, admits: true),
        (count: 90, total: 100, admits: true),
    ])
    func `more than half of a large container is held`(count: Int, total: Int, admits: Bool) {
        var deletions = DeletionGuard()
        let answer = deletions.judge(count, below: .root, total: total, at: .start) { _ in true }
        #expect(answer == (admits ? .admitted : .held(untilRemoved: nil)))
    }

    @Test func `more than ten thousand go only with the folder that they are in`() throws {
        var deletions = DeletionGuard()
        let folder = try ItemPath(parsing: "Photos")
        var isRemoved = false
        func answer(_ count: Int, _ path: String, second: Int64) throws -> DeletionGuard.Answer {
            let below = try ItemPath(parsing: path)
            return deletions.judge(count, below: below, total: 100_000, at: Instant(.seconds(second))) { asked in
                isRemoved && asked == folder
            }
        }
        #expect(try answer(9_000, "Photos/2001", second: 0) == .admitted)
        #expect(try answer(1_001, "Photos/2002", second: 1) == .held(untilRemoved: folder))
        #expect(try answer(1_000, "Photos/2002", second: 1) == .admitted)
        #expect(try answer(2, "Music", second: 2) == .held(untilRemoved: nil))
        isRemoved = true
        #expect(try answer(5_000, "Photos", second: 3) == .admitted)
        // What was a minute ago counts no more.
        #expect(try answer(6_000, "Music", second: 65) == .admitted)
    }

    @Test func `what was confirmed does not count for what follows`() {
        var deletions = DeletionGuard()
        func answer(_ count: Int, of total: Int) -> DeletionGuard.Answer {
            deletions.judge(count, below: .root, total: total, at: .start) { _ in false }
        }
        #expect(answer(400, of: 1000) == .admitted)
        #expect(answer(200, of: 600) == .held(untilRemoved: nil))
        deletions.forgetRecent()
        #expect(answer(200, of: 600) == .admitted)
    }
}
