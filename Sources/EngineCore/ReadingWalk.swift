package import UbiquityModel

/// Who reads the small files of a folder one after the other gets the next ones before asking for them: how many, and when.
///
/// A *miss* is a read that has to wait for the cloud. One alone tells nothing; a second in the same folder, soon after, is the beginning of
/// a walk, and each further one shows that it goes on: twice as many are brought then. So does the reading of what was brought, and the
/// next ones come before they are missed. In the next folder as many begin it if those were read, and else half as many, so that who turns
/// to single files in many folders gets fewer and fewer, and soon none.
package struct ReadingWalk: Sendable {
    package static let firstWindow = 32
    package static let largestWindow = 512
    /// Who pauses for longer begins anew.
    package static let pause = Duration.seconds(2)

    private var folder: ItemID?
    private var lastMiss: Instant?
    private var misses = 0
    private var window = 0

    package init() {}

    /// - Parameter isRead: whether most of what was brought last has been read.
    /// - Returns: how many files of the folder are to be brought now.
    package mutating func missed(in folder: ItemID, at now: Instant, isRead: Bool = false) -> Int {
        defer { lastMiss = now }
        guard let lastMiss, now - lastMiss < Self.pause else {
            begin(folder, window: 0)
            return 0
        }
        guard folder == self.folder else {
            let next = isRead ? window : window / 2
            begin(folder, window: next < Self.firstWindow ? 0 : next)
            return window
        }
        misses += 1
        guard misses > 1 else { return 0 }
        return grow()
    }

    /// Most of what was brought last in that folder has been read.
    /// - Returns: how many more of it are to be brought now.
    package mutating func readMost(of folder: ItemID, at now: Instant) -> Int {
        guard folder == self.folder, window > 0, let lastMiss, now - lastMiss < Self.pause else { return 0 }
        self.lastMiss = now
        return grow()
    }

    private mutating func grow() -> Int {
        window = min(Self.largestWindow, max(Self.firstWindow, window * 2))
        return window
    }

    private mutating func begin(_ folder: ItemID, window: Int) {
        self.folder = folder
        self.window = window
        misses = 1
    }
}
