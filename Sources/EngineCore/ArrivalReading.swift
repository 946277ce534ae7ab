package import UbiquityModel

/// Who reads small new files as they come gets the next ones with their content: how many, and when.
///
/// What arrives is in the cloud only until somebody reads it. Where programs take up what comes, as a build or an indexer of its own does,
/// each file would be put there, asked for, filled and written down once more. So a read that has to wait, in a folder in which something has
/// just arrived, begins it: of the next arrivals some come whole. At least one of them does not: that it is missed in turn shows that
/// programs still read what comes, and then twice as many come whole; that it is not ends it.
package struct ArrivalReading: Sendable {
    package static let firstWindow = 32
    package static let largestWindow = 512
    /// What was not missed for so long is not waited for.
    package static let pause = Duration.seconds(2)
    /// Folders in which a miss counts: those of the newest arrivals.
    private static let rememberedFolders = 64

    private var folders: [ItemID] = []
    private var lastMiss: Instant?
    private var hasMissed = false
    private var window = 0

    package init() {}

    /// A program waits for a small file of that folder.
    package mutating func missed(in folder: ItemID, at now: Instant) {
        guard folders.contains(folder) else { return }
        lastMiss = now
        hasMissed = true
    }

    /// Small new files are about to appear.
    /// - Parameter arriving: their folders, one for each.
    /// - Returns: how many of them come whole.
    package mutating func arrived(_ arriving: [ItemID], at now: Instant) -> Int {
        remember(arriving)
        guard let lastMiss, now - lastMiss < Self.pause else {
            (window, hasMissed) = (0, false)
            return 0
        }
        if hasMissed { window = min(Self.largestWindow, max(Self.firstWindow, window * 2)) }
        hasMissed = false
        return max(0, min(window, arriving.count - 1))
    }

    private mutating func remember(_ arriving: [ItemID]) {
        for folder in arriving where folders.last != folder {
            folders.removeAll { $0 == folder }
            folders.append(folder)
        }
        if folders.count > Self.rememberedFolders { folders.removeFirst(folders.count - Self.rememberedFolders) }
    }
}
