package import UbiquityModel

/// Whether there is room for what comes by itself. Nobody waits for it, so it leaves more of the disk free than what programs ask for,
/// and it never displaces what is used.
package struct FetchingRoom: Hashable, Sendable {
    /// What it waits for.
    package enum Obstacle: Hashable, Sendable { case disk, limit }

    package var rules = KeepingRules()
    /// Of all content that is here.
    package var localBytes: Int64 = 0
    /// What is just coming by itself, of which some is here already.
    package var underWay: Int64 = 0
    package var freeBytes = Int64.max
    package var diskBytes: Int64 = 0

    package init() {}

    /// What comes by itself leaves so much of the disk free: a twentieth, but neither less nor more than makes sense.
    package static func reserve(ofDisk bytes: Int64) -> Int64 { min(max(bytes / 20, leastReserve), largestReserve) }
    private static let leastReserve: Int64 = 24 << 20
    private static let largestReserve: Int64 = 4 << 30

    /// Why a content may not come now. What is pinned is here whatever the limit says: other content goes for it.
    package func obstacle(to bytes: Int64, isPinned: Bool) -> Obstacle? {
        let coming = Sizes.sum(underWay, bytes)
        if Sizes.sum(coming, Self.reserve(ofDisk: diskBytes)) > freeBytes { return .disk }
        guard let target = rules.targetBytes, !isPinned else { return nil }
        return Sizes.sum(localBytes, coming) > target ? .limit : nil
    }
}
