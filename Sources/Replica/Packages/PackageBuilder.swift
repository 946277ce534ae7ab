internal import CLinux
internal import Glibc
package import SystemPackage
package import UbiquityModel

/// Makes a package beside the tree, as its index says. Blocks on the disk.
///
/// 1. It begins with all of it: folders, links, empty files, files that are linked from an older state of it, and of all others either
///    placeholders or empty files to be filled.
/// 2. Whoever wants some whole fills those that are `wanted`.
/// 3. `finish` gives files and folders their modes and times, and says what the package looks like.
package final class PackageBuilder: Sendable {
    /// What becomes of a file of the new state.
    package enum Source: Sendable, Hashable {
        /// The same file as in the older state, at that path there.
        case linked(ItemPath)
        /// Its content comes when somebody asks.
        case dataless
        /// Its content is put there now.
        case whole
    }

    /// A file whose content is to be put there.
    package struct Wanted: Sendable {
        package var path: ItemPath
        package var offset: Int64
        package var size: Int64
    }

    /// In the staging folder.
    package let name: String
    private let folder: OwnedDescriptor
    private let index: PackageIndex
    private let attributes: ItemAttributes
    package let wanted: [Wanted]
    /// Of what is complete from the beginning.
    private let refused: RefusedAttributes

    /// - Parameters:
    ///   - older: the folder of the older state, of which files are linked.
    ///   - revision: what placeholders stand for.
    ///   - source: of each file that is not empty.
    package init(
        _ index: PackageIndex,
        revision: RevisionID,
        attributes: ItemAttributes,
        older: Int32?,
        in staging: Staging,
        source: (PackageIndex.Element) -> Source
    ) throws(Errno) {
        let name = try staging.makeFolder(mode: 0o700)
        let folder = try staging.open(name, flags: O_RDONLY | O_DIRECTORY)
        do throws(Errno) {
            (wanted, refused) = try Self.make(index, in: folder.raw, revision, older, source)
        } catch {
            try? staging.remove(name)
            throw error
        }
        self.index = index
        self.attributes = attributes
        self.name = name
        self.folder = folder
    }

    private static func make(
        _ index: PackageIndex,
        in folder: Int32,
        _ revision: RevisionID,
        _ older: Int32?,
        _ source: (PackageIndex.Element) -> Source
    ) throws(Errno) -> ([Wanted], RefusedAttributes) {
        var wanted: [Wanted] = []
        var refused = RefusedAttributes()
        var offset = Int64(index.encoded.count)
        for element in index.elements {
            guard let last = element.path.last else { throw .invalidArgument }
            let parent = try PackageFolder.open(element.path.parent, in: folder, flags: folderFlags)
            switch element.kind {
            case .folder:
                try last.withCString { name throws(Errno) in try called(mkdirat(parent.raw, name, 0o700)) }
                if !element.extended.isEmpty {
                    let made = try PackageFolder.open(ItemPath([last]), in: parent.raw, flags: folderFlags)
                    try setExtended(made.raw, element, &refused)
                }
            case .symlink(let target):
                let target = target.map { CChar(bitPattern: $0) } + [0]
                try last.withCString { name throws(Errno) in try called(symlinkat(target, parent.raw, name)) }
            case .file(let size, let modified):
                switch size == 0 ? .whole : source(element) {
                case .linked(let path):
                    guard let older else { throw .invalidArgument }
                    try link(path, older, last, parent.raw)
                case .dataless:
                    let placeholder = Placeholder(
                        revision: revision,
                        generation: .random(in: .min ... .max),
                        size: size,
                        modified: modified,
                        mode: element.mode,
                        offset: offset
                    )
                    let made = try last.withCString { name throws(Errno) in
                        try PlaceholderOperations.create(
                            in: parent.raw,
                            name: name,
                            placeholder,
                            extended: element.extended
                        )
                    }
                    refused.add(made.refused, of: element.extended, on: made.state.key)
                case .whole:
                    let file = try OwnedDescriptor(in: parent.raw, last, flags: O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
                    if size == 0 { try complete(file.raw, element, &refused) }
                    if size > 0 { wanted.append(Wanted(path: element.path, offset: offset, size: size)) }
                }
                offset += size
            }
        }
        return (wanted, refused)
    }

    private static var folderFlags: Int32 { O_RDONLY | O_DIRECTORY }

    private static func link(_ path: ItemPath, _ older: Int32, _ name: Name, _ parent: Int32) throws(Errno) {
        guard let last = path.last else { throw .invalidArgument }
        let folder = try PackageFolder.open(path.parent, in: older, flags: folderFlags)
        try last.withCString { from throws(Errno) in
            try name.withCString { to throws(Errno) in try called(linkat(folder.raw, from, parent, to, 0)) }
        }
    }

    /// Opens a file that is wanted whole, for writing.
    package func open(_ wanted: Wanted) throws(Errno) -> OwnedDescriptor {
        try PackageFolder.open(wanted.path, in: folder.raw, flags: O_RDWR)
    }

    private static func setExtended(
        _ descriptor: Int32,
        _ element: PackageIndex.Element,
        _ refused: inout RefusedAttributes
    ) throws(Errno) {
        let names = try ExtendedAttributes.replaceSynced(descriptor, with: element.extended)
        if !names.isEmpty { refused.add(names, of: element.extended, on: try InodeKey(descriptor: descriptor)) }
    }

    /// A file has its content: its attributes.
    private static func complete(
        _ file: Int32,
        _ element: PackageIndex.Element,
        _ refused: inout RefusedAttributes
    ) throws(Errno) {
        try setExtended(file, element, &refused)
        try InodeMode.set(file, element.mode, .file)
        if case .file(_, let modified) = element.kind { try setModified(file, modified) }
    }

    /// After the disk was synced: whoever did that need not have been told what it could not write of what was put here.
    package func waitWritten() throws(Errno) {
        for file in wanted {
            let file = try open(file)
            try checked(clinux_wait_written(file.raw))
        }
    }

    /// All that was wanted is there. Nothing is synced: the caller syncs the disk, before or after.
    /// - Returns: the package as it is now, which publishing it does not change.
    package func finish() throws(Errno) -> (name: String, state: LocalState) {
        let paths = Set(wanted.map(\.path))
        var refused = refused
        for element in index.elements where paths.contains(element.path) {
            let file = try PackageFolder.open(element.path, in: folder.raw, flags: O_RDWR)
            try Self.complete(file.raw, element, &refused)
        }
        // From below: a folder that forbids to write in it is not written in any more.
        for element in index.elements.reversed() where element.kind == .folder {
            let made = try PackageFolder.open(element.path, in: folder.raw, flags: Self.folderFlags)
            try InodeMode.set(made.raw, element.mode, .folder)
        }
        _ = try ExtendedAttributes.replaceSynced(folder.raw, with: attributes.extended)
        try refused.write(to: folder.raw)
        try InodeMode.set(folder.raw, attributes.mode, .folder)
        try setModified(folder.raw, attributes.modified)
        return (name, try PackageTree(folder: folder.raw).state)
    }
}
