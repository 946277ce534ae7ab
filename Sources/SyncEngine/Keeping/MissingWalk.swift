import Replica
import UbiquityModel

/// Goes through all that lies under some items of the cloud, folder by folder, and finds the files whose content is not here.
struct MissingWalk: Sendable {
    private static let pageSize = 500

    private let database: StateDatabase
    private var roots: [ItemID]
    /// Those of the current root that are still to be looked into; the last comes next.
    private var folders: [ItemID] = []
    private var current: (folder: ItemID, last: Name?)?
    private var page: ArraySlice<MissingContent> = []

    init(under roots: [ItemID], in database: StateDatabase) {
        self.database = database
        self.roots = roots.reversed()
    }

    /// Reads on a thread that may block. `nil` when there are no more, or the database cannot be read.
    ///
    /// - Returns: one, or several small ones that come together.
    mutating func next() async -> [MissingContent]? {
        if page.isEmpty {
            let walk = self
            guard let advanced = try? await BlockingPool.shared.run({ try walk.advanced() }) else { return nil }
            self = advanced
        }
        return SmallFiles.next(of: &page, \.file)
    }

    /// To the next page that has something in it.
    private func advanced() throws -> MissingWalk {
        var walk = self
        while walk.page.isEmpty {
            if let (folder, last) = walk.current {
                let found = try database.missingContents(in: folder, after: last, limit: Self.pageSize)
                walk.current = found.count < Self.pageSize ? nil : (folder, found.last?.place.name)
                walk.page = found[...]
            } else if let folder = walk.folders.popLast() {
                walk.current = (folder, nil)
                walk.folders += try database.remoteFolders(in: folder).reversed()
            } else if let root = walk.roots.popLast() {
                walk.folders = [root]
                // It may be a file.
                if let file = try database.missingContent(root) { walk.page = [file] }
            } else {
                break
            }
        }
        return walk
    }
}

/// Which files are worth asking for together.
enum SmallFiles {
    private static let most = 250
    private static let mostBytes: Int64 = 4 * 1024 * 1024

    /// Takes the first one away, with those that follow it and may come with it. `nil` when there are no more.
    /// - Parameter file: what of an element is to come; `nil` for what comes alone.
    static func next<Element>(
        of elements: inout ArraySlice<Element>,
        _ file: (Element) -> FileContent?
    ) -> [Element]? {
        guard let first = elements.popFirst() else { return nil }
        var (group, bytes) = ([first], file(first)?.size ?? 0)
        while isSmall(file(first)), group.count < most, let other = elements.first, isSmall(file(other)) {
            bytes = Sizes.sum(bytes, file(other)?.size ?? 0)
            guard bytes <= mostBytes else { break }
            group.append(other)
            elements.removeFirst()
        }
        return group
    }

    private static func isSmall(_ file: FileContent?) -> Bool {
        guard let file else { return false }
        return !file.isPackage && file.size <= ReadAhead.smallFile
    }
}
