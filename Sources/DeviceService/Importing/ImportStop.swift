internal import Synchronization
internal import UbiquityControl

/// Whether imports are to end early. They look at it between two items, so whoever waits for their end says so first.
final class ImportStop: Sendable {
    /// Of which mount points; `nil` stands for all. A leaf: memory work only.
    private let wishes = Mutex<[ControlPath?]>([])

    /// - Parameter point: `nil`: every import, also one that begins later.
    func ask(_ point: ControlPath? = nil) { wishes.withLock { $0.append(point) } }

    /// Whoever has asked for the same goes on wanting it.
    func takeBack(_ point: ControlPath? = nil) {
        wishes.withLock { wishes in
            guard let index = wishes.firstIndex(of: point) else { return }
            wishes.remove(at: index)
        }
    }

    func isAsked(for point: ControlPath) -> Bool {
        wishes.withLock { wishes in wishes.contains { $0 == nil || $0 == point } }
    }
}
