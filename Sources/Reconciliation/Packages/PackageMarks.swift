package import UbiquityModel

/// Which folders of a container a device takes for packages (semantics section 5), apart from what the disk and the database say of them.
///
/// A folder that is an item stays what it was when that began, unless it gets a name or the attribute of a package, which it had not; so that
/// nothing changes for what was in the cloud before its extension was declared.
package struct PackageMarks: Sendable {
    package var rules: PackageRules
    /// Folders that may be packages whatever their names: items that are, those with the attribute, and those that were taken for one.
    private var marked: Set<InodeKey> = []
    /// Packages of the cloud that were made here: what they are does not depend on what this device takes for one, also before their
    /// rows are written.
    private var made: Set<InodeKey> = []

    private static let attribute = Array(PackageDeclaration.attribute.utf8)

    package init(rules: PackageRules = PackageRules()) { self.rules = rules }

    /// It is a package, or looks like one.
    package mutating func mark(_ key: InodeKey) { marked.insert(key) }

    /// A package of the cloud is about to appear.
    package mutating func noteMade(_ key: InodeKey) {
        made.insert(key)
        marked.insert(key)
    }

    /// The engine gives it a name that others gave it: that may be no package's, and its row may be of another inode, after a backup was
    /// restored.
    package mutating func noteMoved(_ key: InodeKey) { if marked.contains(key) { made.insert(key) } }

    package func isMarked(_ key: InodeKey) -> Bool { marked.contains(key) }

    /// Without a look at the disk: whether a folder may be one.
    package func maybe(_ key: InodeKey, _ name: Name) -> Bool { rules.isPackage(name) || marked.contains(key) }

    /// Whether any folder of that name may be one.
    package func maybe(_ name: Name) -> Bool { !marked.isEmpty || rules.isPackage(name) }

    /// A folder turned out to be none.
    /// - Returns: whether it was taken for one before.
    package mutating func unmark(_ key: InodeKey) -> Bool { marked.remove(key) != nil }

    /// - Parameter rows: what the folder is known as.
    package func isPackage(_ key: InodeKey, _ name: Name, hasAttribute: Bool, rows: [SyncedItem]) -> Bool {
        let isSaid = hasAttribute || rules.isPackage(name)
        for row in rows {
            switch row.content.kind {
            case .package: return true
            case .folder:
                let wasSaid =
                    rules.isPackage(row.place.name) || row.attributes.extended[Self.attribute] != nil
                return isSaid && !wasSaid
            case .file, .symlink: break
            }
        }
        return isSaid || made.contains(key)
    }
}
