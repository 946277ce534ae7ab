import EngineCore
import UbiquityModel

/// What the engine remembers of the contents that it keeps here by itself.
struct KeepingState {
    /// What is fetched by itself at the same time, of those that appeared here and of those that were looked for. When the link begins to
    /// cost, what each has asked for last still comes.
    static let width = 8
    /// Appeared files that wait for their turn. What is more is looked for later.
    static let longestQueue = 10_000

    var room = FetchingRoom()
    /// Why something that is to come does not.
    var obstacle: FetchingRoom.Obstacle?

    /// Looks for all that is to come and is not here.
    var search: Task<Void, Never>?
    /// Looks again after the end of the one that runs.
    var searchesAgain = false
    /// Looks again when there may be room.
    var retry: Task<Void, Never>?
    var retryDue: Instant?
    /// What the search makes be here it fetches itself.
    var isSearchPopulating = false

    /// Files that appeared here.
    var queue: [(place: LocalPlace, key: InodeKey)] = []
    var nextInQueue = 0
    var running: [InodeKey: Task<Void, Never>] = [:]
    /// Some found no place in the queue.
    var isBehind = false

    var isReviewing = false
    var reviewsAgain = false
    /// What was open in the last review and would go.
    var hindering: Set<InodeKey> = []
    /// Something is claimed by a program that would go.
    var waitsForClaim = false
    /// Reviews when the next content goes for its age.
    var aging: Task<Void, Never>?

    var rules: KeepingRules {
        get { room.rules }
        set { room.rules = newValue }
    }

    var isQueueFull: Bool { queue.count - nextInQueue >= Self.longestQueue }

    mutating func takeFromQueue() -> (place: LocalPlace, key: InodeKey)? {
        guard nextInQueue < queue.count else {
            queue = []
            nextInQueue = 0
            return nil
        }
        defer { nextInQueue += 1 }
        return queue[nextInQueue]
    }

    mutating func dropQueue() {
        queue = []
        nextInQueue = 0
        isBehind = false
    }

    /// Why something does not come, in words.
    var obstacleInWords: String? {
        switch obstacle {
        case .disk: "the disk has no room to spare"
        case .limit: "the local limit is reached"
        case nil: nil
        }
    }
}
