package import Replica
package import UbiquityModel

/// A name in a folder of the backing tree. The folder is known by its inode, so that a renamed folder stays itself.
package struct LocalPlace: Hashable, Sendable {
    package var folder: InodeKey
    package var name: Name

    package init(folder: InodeKey, name: Name) {
        self.folder = folder
        self.name = name
    }
}
