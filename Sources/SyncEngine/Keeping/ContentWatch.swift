import Glibc
import Synchronization
import UbiquityModel

/// Notes when programs use files, and tells the engine when more content may be here than is kept.
///
/// Opens are many, and each is worth as little as a note in memory: they are written down together, some time after the first of them.
final class ContentWatch: Sendable {
    /// So much may a death of the service forget.
    private static let writingTime = Duration.seconds(300)
    /// Then they are written down at once.
    private static let largestNumber = 10_000
    /// What comes within this time is looked at together.
    private static let gatheringTime = Duration.milliseconds(100)

    private struct State {
        var uses: [InodeKey: Timestamp] = [:]
        /// Somebody comes for them.
        var isWritingDue = false
        /// What could not go because it was open.
        var hindering: Set<InodeKey> = []
        /// How long the next look waits at least, so that looking takes but a part of the time.
        var pause = ContentWatch.gatheringTime
        weak var engine: ContainerEngine?
    }

    /// Guards memory only; a leaf in the order of locks.
    private let state = Mutex(State())
    /// Whether it matters how much is here.
    private let isOn = Atomic(false)
    private let isTold = Atomic(false)

    func attach(_ engine: ContainerEngine?) { state.withLock { $0.engine = engine } }

    func setOn(_ on: Bool) { isOn.store(on, ordering: .relaxed) }

    /// A program has opened or closed a file.
    func used(_ key: InodeKey) {
        let now = EngineView.timeOfDay
        let (engine, isUrgent, isHindering): (ContainerEngine?, Bool, Bool) = state.withLock { state in
            state.uses[key] = now
            let isHindering = state.hindering.contains(key)
            let isUrgent = state.uses.count == Self.largestNumber
            guard isUrgent || !state.isWritingDue else { return (nil, false, isHindering) }
            state.isWritingDue = true
            return (state.engine, isUrgent, isHindering)
        }
        if let engine { writeUses(of: engine, after: isUrgent ? .zero : Self.writingTime) }
        if isHindering { grew() }
    }

    /// Whoever waits does not keep the engine alive.
    private func writeUses(of engine: ContainerEngine, after time: Duration) {
        Task { [weak engine] in
            try? await Task.sleep(for: time)
            await engine?.writeUses()
        }
    }

    func takeUses() -> [InodeKey: Timestamp] {
        state.withLock { state in
            defer {
                state.uses = [:]
                state.isWritingDue = false
            }
            return state.uses
        }
    }

    /// More content is here, or what kept some of it from going is over. Cheap; may be called for each piece that comes.
    func grew() {
        guard isOn.load(ordering: .relaxed), !isTold.exchange(true, ordering: .relaxed) else { return }
        let pause = state.withLock { $0.pause }
        Task { [weak self] in
            try? await Task.sleep(for: pause)
            // What is told from here on is told anew.
            self?.isTold.store(false, ordering: .relaxed)
            // The engine may have come only meanwhile.
            await self?.state.withLock { $0.engine }?.reviewContent()
        }
    }

    /// The engine has looked.
    /// - Parameter hindering: those whose closing is worth another look.
    func looked(for time: Duration, hindering: Set<InodeKey>) {
        state.withLock { state in
            state.pause = max(Self.gatheringTime, time * 10)
            state.hindering = hindering
        }
    }
}
