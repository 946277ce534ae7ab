/// A name in a folder of the backing tree. The folder is known by its inode, so that a renamed folder stays itself.
package struct LocalPlace: Hashable, Sendable, Comparable {
    package var folder: InodeKey
    package var name: Name

    package init(folder: InodeKey, name: Name) {
        self.folder = folder
        self.name = name
    }

    /// An order that is the same in every run, and means nothing.
    package static func < (left: Self, right: Self) -> Bool {
        left.folder == right.folder ? left.name < right.name : left.folder < right.folder
    }
}
