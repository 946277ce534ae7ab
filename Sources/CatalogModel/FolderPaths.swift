package import UbiquityModel

/// Paths of folders, each looked up once: also of deleted ones, by the places that they had.
///
/// A path that would be too long lacks folders, in whose stead it has "…": folders lie in folders without a limit, and a listing of
/// thousands of such paths would fill the memory.
package struct FolderPaths {
    private var known: [ItemID: String] = [:]
    /// Of a path in bytes. A name has 255 at most, and three times as many where it is no UTF-8.
    private static let limit = 4096
    private static let folderLimit = limit - 3 * 255

    package init() {}

    /// - Parameter folder: the place of a folder, deleted or not; `nil` for one that is not known.
    package mutating func path<Failure: Error>(
        of place: Place,
        folder: (ItemID) throws(Failure) -> Place?
    ) throws(Failure) -> String {
        try prefix(place.parent, depth: 0, folder) + place.name.description
    }

    private mutating func prefix<Failure: Error>(
        _ id: ItemID,
        depth: Int,
        _ folder: (ItemID) throws(Failure) -> Place?
    ) throws(Failure) -> String {
        if id == .root || depth > 1_000 { return "" }
        if let path = known[id] { return path }
        var path = "…/"
        if let place = try folder(id) {
            let name = place.name.description + "/"
            let parent = try prefix(place.parent, depth: depth + 1, folder)
            path = (parent.utf8.count + name.utf8.count <= Self.folderLimit ? parent : path) + name
        }
        known[id] = path
        return path
    }
}
