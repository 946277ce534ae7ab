internal import Synchronization

/// The answer to a question that several ask at about the same time. It is made once.
///
/// 1. Who asks first makes it. Who asks the same meanwhile waits for that, and whoever asks the same later gets it at once.
/// 2. Who asks something else while it is being made makes an answer of his own, which nobody else gets.
/// 3. The next question that is asked after that takes its place: one answer is kept, however long it is.
///
/// Whether somebody may have the answer is not decided here. What fails, or does not fit, is given to nobody but who made it.
final class SharedAnswer<Question: Equatable & Sendable, Answer: Sendable>: Sendable {
    private enum State {
        case idle
        case making(Question, waiting: [CheckedContinuation<Answer?, Never>])
        case made(Question, Answer)
    }

    private enum Turn {
        case make, wait, alone
        case take(Answer)
    }

    /// Guards who makes and who waits. A leaf: who waits is resumed outside of it.
    private let state = Mutex(State.idle)

    /// - Parameter fits: whether what was made answers the question, for others too.
    func answer(
        to question: Question,
        make: () async throws -> Answer,
        fits: (Answer) -> Bool
    ) async throws -> Answer {
        switch turn(question) {
        case .take(let answer): return answer
        case .alone: return try await make()
        case .wait:
            if let answer = await others(question) { return answer }
            return try await make()
        case .make:
            do {
                let answer = try await make()
                end(question, with: fits(answer) ? answer : nil)
                return answer
            } catch {
                end(question, with: nil)
                throw error
            }
        }
    }

    private func turn(_ question: Question) -> Turn {
        state.withLock { state -> Turn in
            switch state {
            case .making(let current, _): return current == question ? .wait : .alone
            case .made(let last, let answer) where last == question: return .take(answer)
            case .idle, .made:
                state = .making(question, waiting: [])
                return .make
            }
        }
    }

    /// What somebody else makes, or has made by now; `nil` if nothing comes of that. It takes no longer than to make it: who makes it ends
    /// the wait whatever becomes of it, also when he is cancelled.
    private func others(_ question: Question) async -> Answer? {
        await withCheckedContinuation { continuation in
            let ready = state.withLock { state -> Answer?? in
                switch state {
                case .making(let current, var waiting) where current == question:
                    waiting.append(continuation)
                    state = .making(current, waiting: waiting)
                    return nil
                case .made(let last, let answer) where last == question: return .some(answer)
                case .idle, .making, .made: return .some(nil)
                }
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }

    /// Called by who makes it: the state is his until then.
    private func end(_ question: Question, with answer: Answer?) {
        let waiting = state.withLock { state -> [CheckedContinuation<Answer?, Never>] in
            guard case .making(_, let waiting) = state else { return [] }
            if let answer { state = .made(question, answer) } else { state = .idle }
            return waiting
        }
        for one in waiting { one.resume(returning: answer) }
    }
}
