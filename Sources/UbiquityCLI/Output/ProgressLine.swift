import CLinux
import Glibc
import Synchronization
import UbiquityControl

/// A line at the bottom of a terminal that shows how far something is. Elsewhere it is nothing.
final class ProgressLine: Sendable {
    static let shared = ProgressLine()

    private struct State {
        var isShown = false
        var lastDrawn = ContinuousClock.now - .seconds(1)
        var started = ContinuousClock.now
        var activity = ""
    }

    private static let pause: Duration = .milliseconds(100)

    /// Guards the line on the screen; held while it is drawn.
    private let state = Mutex(State())

    func show(_ progress: ControlProgress) {
        guard Terminal.errorsAreTerminal else { return }
        state.withLock { state in
            let now = ContinuousClock.now
            if state.activity != progress.activity {
                state.activity = progress.activity
                state.started = now
            }
            guard now - state.lastDrawn >= Self.pause else { return }
            state.lastDrawn = now
            state.isShown = true
            let columns = Int(max(20, clinux_terminal_columns(STDERR_FILENO)))
            let text = Self.text(progress, elapsed: now - state.started, columns: columns - 1)
            Terminal.write(Array("\r\u{1B}[K\(text)".utf8), to: STDERR_FILENO)
        }
    }

    func clear() {
        state.withLock { state in
            guard state.isShown else { return }
            state.isShown = false
            Terminal.write(Array("\r\u{1B}[K".utf8), to: STDERR_FILENO)
        }
    }

    /// `downloading ███████░░░ 70 %  1.4 GiB of 2 GiB  23 MiB/s`
    static func text(_ progress: ControlProgress, elapsed: Duration, columns: Int) -> String {
        let counts: String
        switch progress.unit {
        case .none: counts = ""
        case .files: counts = progress.total > 0 ? "\(progress.done) of \(progress.total)" : "\(progress.done)"
        case .bytes:
            let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
            let rate = seconds > 0.5 ? "  \(ByteCount.text(Int64(min(Double(progress.done) / seconds, 1e18))))/s" : ""
            counts = "\(ByteCount.text(progress.done)) of \(ByteCount.text(progress.total))\(rate)"
        }
        guard progress.total > 0 else { return String("\(progress.activity) \(counts)".prefix(columns)) }
        let share = min(1, max(0, Double(progress.done) / Double(progress.total)))
        let tail = " \(Int(share * 100)) %  \(counts)"
        let room = min(30, columns - progress.activity.count - tail.count - 2)
        guard room >= 5 else { return String("\(progress.activity)\(tail)".prefix(columns)) }
        let filled = Int(share * Double(room))
        let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: room - filled)
        return "\(progress.activity) \(bar)\(tail)"
    }
}
