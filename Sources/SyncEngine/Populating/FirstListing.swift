import Driver
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// Which folders the first listing of a container has not told yet, and who waits for one of them: those are asked for first.
///
/// Filled from the state database, which keeps it over a stop. Used by request threads and by the engine.
final class FirstListing: Sendable {
    private struct Waiter: Sendable {
        let folder: ItemID
        let completion: @Sendable (Errno?) -> Void
        var deadline: Task<Void, Never>?
    }

    private struct State: Sendable {
        var unlisted: Set<ItemID> = []
        /// The unlisted folders that no request is on its way for, the next one last.
        var queue: [ItemID] = []
        /// Folders that somebody waits for.
        var wanted: [ItemID] = []
        /// Folders that are only told in part, and up to which name.
        var progress: [ItemID: Name] = [:]
        var waiters: [UInt64: Waiter] = [:]
        var next: UInt64 = 0
        /// Why nothing can be asked for at the moment.
        var obstacle: Errno?
    }

    /// A leaf: memory work only.
    private let state = Mutex(State())

    /// Folders asked for in one request.
    private static let batch = 64
    /// How long somebody waits for a folder, as for content.
    private let patience: Duration

    init(patience: Duration) { self.patience = patience }

    func load(_ folders: [ItemID]) {
        state.withLock { state in
            state.unlisted = Set(folders)
            state.queue = folders.reversed()
        }
    }

    var isComplete: Bool { state.withLock { $0.unlisted.isEmpty } }
    func isListed(_ folder: ItemID) -> Bool { state.withLock { !$0.unlisted.contains(folder) } }

    func add(_ folders: [ItemID]) {
        state.withLock { state in
            state.queue.insert(contentsOf: folders.filter { state.unlisted.insert($0).inserted }, at: 0)
        }
    }

    // MARK: Who waits

    /// `nil` when the folder is known whole; else `completion` is called exactly once.
    func wait(for folder: ItemID, _ completion: @escaping @Sendable (Errno?) -> Void) -> ContentRequest? {
        enum Answer {
            case known
            case failed(Errno)
            case waits(UInt64)
        }
        let answer: Answer = state.withLock { state in
            guard state.unlisted.contains(folder) else { return .known }
            if let obstacle = state.obstacle { return .failed(obstacle) }
            state.next += 1
            state.waiters[state.next] = Waiter(folder: folder, completion: completion)
            state.wanted.append(folder)
            return .waits(state.next)
        }
        switch answer {
        case .known:
            return nil
        case .failed(let error):
            completion(error)
            return ContentRequest {}
        case .waits(let number):
            let deadline = Task { [weak self, patience] in
                do { try await Task.sleep(for: patience) } catch { return }
                self?.end(number, .timedOut)
            }
            let isWaiting = state.withLock { state in
                state.waiters[number]?.deadline = deadline
                return state.waiters[number] != nil
            }
            if !isWaiting { deadline.cancel() }
            return ContentRequest { [weak self] in self?.end(number, .interrupted) }
        }
    }

    /// It is asked for among the first, although nobody waits for it.
    func want(_ folder: ItemID) { state.withLock { if !$0.wanted.contains(folder) { $0.wanted.append(folder) } } }

    private func end(_ number: UInt64, _ error: Errno) {
        let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
        waiter?.deadline?.cancel()
        waiter?.completion(error)
    }

    /// Nothing can be asked for, for this reason; `nil`: it can.
    func setObstacle(_ error: Errno?) {
        let failed: [Waiter] = state.withLock { state in
            state.obstacle = error
            guard error != nil else { return [] }
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in failed {
            waiter.deadline?.cancel()
            waiter.completion(error)
        }
    }

    // MARK: What is asked for

    struct Question: Sendable {
        var folders: [ItemID]
        /// The first folder's items after this name.
        var after: Name?
    }

    /// The folders to ask for next; `nil` when every unlisted one is on its way. Those that somebody waits for go alone.
    func takeQuestion(onlyWanted: Bool = false) -> Question? {
        state.withLock { state in
            while let wanted = state.wanted.popLast() {
                guard let index = state.queue.lastIndex(of: wanted) else { continue }
                state.queue.remove(at: index)
                return Question(folders: [wanted], after: state.progress[wanted])
            }
            guard !onlyWanted, let first = state.queue.popLast() else { return nil }
            var question = Question(folders: [first], after: state.progress[first])
            while question.folders.count < Self.batch, let next = state.queue.last, state.progress[next] == nil {
                state.queue.removeLast()
                question.folders.append(next)
            }
            return question
        }
    }

    /// What became of a question: `complete` of its folders are known whole, the one after them up to `last`.
    /// - Parameter found: folders that came to light, in order.
    func answered(_ question: Question, complete: Int, last: Name?, found: [ItemID]) {
        let done = question.folders.prefix(complete)
        let rest = question.folders.dropFirst(complete)
        let freed: [Waiter] = state.withLock { state in
            for folder in done {
                state.unlisted.remove(folder)
                state.progress[folder] = nil
            }
            if let next = rest.first, let last { state.progress[next] = last }
            let fresh = found.filter { state.unlisted.insert($0).inserted }
            // New ones after those that were known before them, and what is begun goes on.
            state.queue.insert(contentsOf: fresh.reversed(), at: 0)
            state.queue.append(contentsOf: rest.reversed())
            let ended = state.waiters.filter { done.contains($0.value.folder) }
            for number in ended.keys { state.waiters[number] = nil }
            state.wanted.append(contentsOf: Set(state.waiters.values.map(\.folder)).intersection(rest))
            return Array(ended.values)
        }
        for waiter in freed {
            waiter.deadline?.cancel()
            waiter.completion(nil)
        }
    }

    /// The question got no answer.
    func failed(_ question: Question) { answered(question, complete: 0, last: nil, found: []) }
}
