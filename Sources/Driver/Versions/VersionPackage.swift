import Replica
import Synchronization
import UbiquityModel

/// A version of a package, which `.versions` shows as a folder in which everything is as it was at that time.
///
/// What it is made of is asked for when somebody first looks into it, and kept for as long as the kernel knows any of it.
final class VersionPackage: Sendable {
    /// Of the item.
    let path: ItemPath
    let version: ItemVersion
    /// Under `.versions/PATH/`.
    let name: Name
    /// A leaf: memory work only.
    private let known = Mutex<VersionContents?>(nil)

    init(of path: ItemPath, _ version: ItemVersion, name: Name) {
        (self.path, self.version, self.name) = (path, version, name)
    }

    var contents: VersionContents? {
        get { known.withLock { $0 } }
        set { known.withLock { $0 = newValue } }
    }
}

/// The same version at the same place is the same folder, whoever asked for it.
extension VersionPackage: Hashable {
    static func == (left: VersionPackage, right: VersionPackage) -> Bool {
        left.path == right.path && left.version == right.version && left.name == right.name
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(path)
        hasher.combine(version.revision)
    }
}

/// What a version of a package is made of, by folder.
struct VersionContents: Sendable {
    struct Element: Hashable, Sendable {
        let element: PackageIndex.Element
        /// Where a file's bytes begin in the version's content; of anything else where those of the next file do.
        let offset: Int64

        var isFolder: Bool { element.kind == .folder }
        /// What of the version's content a file is.
        var part: Range<Int64> { offset..<Sizes.sum(offset, element.size) }

        // Paths tell the elements of one version apart.
        func hash(into hasher: inout Hasher) { hasher.combine(element.path) }
    }

    private let elements: [ItemPath: Element]
    private let names: [ItemPath: [Name]]

    init(_ index: PackageIndex) {
        var elements: [ItemPath: Element] = [:]
        var names: [ItemPath: [Name]] = [:]
        var offset = Int64(index.encoded.count)
        for element in index.elements {
            elements[element.path] = Element(element: element, offset: offset)
            if let name = element.path.last { names[element.path.parent, default: []].append(name) }
            offset = Sizes.sum(offset, element.size)
        }
        (self.elements, self.names) = (elements, names)
    }

    subscript(_ path: ItemPath) -> Element? { elements[path] }

    /// What lies in a folder, ascending by name.
    func entries(of folder: ItemPath) -> [Element] {
        (names[folder] ?? []).compactMap { elements[folder.appending($0)] }
    }
}
