internal import CLinux
internal import Glibc
package import SystemPackage
package import UbiquityModel

/// All that lies in a package's folder, as it was seen in one walk. Fifos, sockets and devices are no part of it.
package struct PackageTree: Sendable {
    package struct Entry: Sendable {
        package var element: PackageIndex.Element
        package var state: LocalState
    }

    /// Ascending by path.
    package let entries: [Entry]
    /// Of what is here.
    package let index: PackageIndex
    /// The folder as a package.
    package let state: LocalState
    /// Attributes for which there was no room here, by the numbers of their entries.
    private let refused: [(entry: Int, attribute: RefusedAttributes.Attribute)]

    /// Blocks on the disk: some 20 µs for each element.
    /// - Parameters:
    ///   - folder: open for reading.
    ///   - root: the folder's own state, as of a folder.
    package init(folder: Int32, root: LocalState) throws(Errno) {
        var entries: [Entry] = []
        try Self.walk(folder, .root, into: &entries)
        entries.sort { $0.element.path < $1.element.path }
        self.entries = entries
        index = PackageIndex(entries.map(\.element))
        let noted = try RefusedAttributes(folder: folder)
        refused = Self.refused(noted, entries)
        state = Self.state(root, entries, index, refused.map(\.attribute))
    }

    package init(folder: Int32) throws(Errno) {
        try self.init(folder: folder, root: try BackingTree.observe(descriptor: folder))
    }

    /// The package as it is sent, with the attributes for which there was no room here.
    /// - Parameter agreed: has their values; `nil`: not known.
    /// - Returns: `nil` if it has not all of them.
    package func index(completedBy agreed: PackageIndex?) -> PackageIndex? {
        guard !refused.isEmpty else { return index }
        var values: [RefusedAttributes.Attribute: (name: [UInt8], value: [UInt8])] = [:]
        for element in agreed?.elements ?? [] {
            for (name, value) in element.extended { values[RefusedAttributes.Attribute(name, value)] = (name, value) }
        }
        var elements = entries.map(\.element)
        for (entry, attribute) in refused {
            guard let known = values[attribute] else { return nil }
            elements[entry].extended[known.name] = known.value
        }
        return PackageIndex(elements)
    }

    private static func refused(
        _ noted: RefusedAttributes,
        _ entries: [Entry]
    ) -> [(entry: Int, attribute: RefusedAttributes.Attribute)] {
        guard !noted.isEmpty else { return [] }
        var refused: [(entry: Int, attribute: RefusedAttributes.Attribute)] = []
        for (number, entry) in entries.enumerated() {
            for attribute in noted.of(entry.state.key) {
                // A program may have set it since.
                let isHere = entry.element.extended.keys.contains { attribute.isNamed($0) }
                if !isHere { refused.append((number, attribute)) }
            }
        }
        return refused
    }

    /// By these the driver finds what lies deeper, and the engine that it lies in a package.
    package func noteFolders(in index: FolderIndex) {
        var keys: [ItemPath: InodeKey] = [.root: state.key]
        for entry in entries where entry.state.kind == .folder {
            guard let parent = keys[entry.element.path.parent], let name = entry.element.path.last else { continue }
            keys[entry.element.path] = entry.state.key
            index.add(entry.state.key, parent: parent, name: name)
        }
    }

    private static func walk(_ folder: Int32, _ path: ItemPath, into entries: inout [Entry]) throws(Errno) {
        let names: [Name]
        do throws(Errno) { names = try folderNames(folder) } catch .noSuchFileOrDirectory where !path.isRoot {
            // Removed after it was opened: the package is there, and another one by now.
            throw .stale
        }
        for name in names {
            // Gone by now: then it is no part of the package any more.
            guard let entry = try entry(folder, path.appending(name), name) else { continue }
            entries.append(entry)
            guard entry.state.kind == .folder else { continue }
            let below: OwnedDescriptor
            do throws(Errno) {
                below = try OwnedDescriptor(in: folder, name, flags: O_RDONLY | O_DIRECTORY)
            } catch .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels {
                // Something else is there now, and whoever put it there has told of it.
                throw .stale
            }
            try walk(below.raw, entry.element.path, into: &entries)
        }
    }

    private static func entry(_ folder: Int32, _ path: ItemPath, _ name: Name) throws(Errno) -> Entry? {
        let item: OwnedDescriptor
        do throws(Errno) {
            item = try OwnedDescriptor(in: folder, name, flags: Int32(CLINUX_O_PATH))
        } catch .noSuchFileOrDirectory {
            return nil
        }
        let state = try BackingTree.observe(descriptor: item.raw)
        let kind: PackageIndex.Element.Kind
        switch state.kind {
        case .folder: kind = .folder
        case .file: kind = .file(size: state.size, modified: state.modified)
        case .symlink:
            kind = .symlink(target: try BackingTree.target(descriptor: item.raw))
        case .other, .package: return nil
        }
        let element = PackageIndex.Element(
            path: path,
            kind: kind,
            mode: state.kind == .symlink ? 0 : state.mode,
            extended: state.mayHaveAttributes ? try ExtendedAttributes.synced(item.raw) : [:]
        )
        return Entry(element: element, state: state)
    }

    private static func state(
        _ root: LocalState,
        _ entries: [Entry],
        _ index: PackageIndex,
        _ refused: [RefusedAttributes.Attribute]
    ) -> LocalState {
        var state = root
        state.kind = .package
        // As it is sent.
        state.size = refused.reduce(index.contentSize) { Sizes.sum($0, Int64($1.bytes)) }
        state.modified = index.modified
        state.linkCount = 1
        var facts = PackageFacts(
            fingerprint: Timestamp(nanoseconds: 0),
            datalessElements: 0,
            bytes: 0,
            localBytes: 0,
            newestChange: root.changed
        )
        // A sum: the order in which the elements were met means nothing.
        var sum: UInt64 = 1
        for entry in entries {
            sum &+= hash(entry)
            facts.newestChange = max(facts.newestChange, entry.state.changed)
            guard entry.state.kind == .file else { continue }
            facts.bytes = Sizes.sum(facts.bytes, entry.state.size)
            if entry.state.isDataless {
                facts.datalessElements += 1
            } else {
                facts.localBytes = Sizes.sum(facts.localBytes, entry.state.size)
            }
        }
        // Never 0, which stands for "not known".
        facts.fingerprint = Timestamp(nanoseconds: Int64(max(1, sum >> 1)))
        state.changed = facts.newestChange
        state.facts = facts
        return state
    }

    /// Nothing that filling, evicting or linking a file changes: not the change time, nor whether its content is here.
    private static func hash(_ entry: Entry) -> UInt64 {
        var hash = StableHash()
        hash.add(entry.element.path.bytes)
        hash.add(UInt64(entry.state.kind.rawValue))
        hash.add(entry.state.key.tag)
        hash.add(entry.state.key.words.0)
        hash.add(entry.state.key.words.1)
        hash.add(entry.state.key.words.2)
        hash.add(UInt64(entry.element.mode))
        for (name, value) in entry.element.extended.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            hash.add(name)
            hash.add(value)
        }
        if case .file(let size, let modified) = entry.element.kind {
            hash.add(UInt64(bitPattern: size))
            hash.add(UInt64(bitPattern: modified.nanoseconds))
        }
        return hash.value
    }
}

/// FNV-1a of 64 bits, mixed in the end: the same in every run and version, and not to be relied on against anybody who wants two contents
/// to have the same.
struct StableHash {
    private var state: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ bytes: [UInt8]) {
        for byte in bytes { state = (state ^ UInt64(byte)) &* 0x100_0000_01b3 }
        add(UInt64(bytes.count))
    }

    mutating func add(_ word: UInt64) {
        var rest = word
        for _ in 0..<8 {
            state = (state ^ (rest & 0xFF)) &* 0x100_0000_01b3
            rest >>= 8
        }
    }

    var value: UInt64 {
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
