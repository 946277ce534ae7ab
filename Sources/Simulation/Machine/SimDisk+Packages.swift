import Reconciliation
import UbiquityModel

/// What a simulated package is made of; in its content a token stands for that, and comes first.
struct SimPackage: Hashable {
    struct Element: Hashable {
        enum Kind: Hashable {
            case file(tokens: Int, modified: Timestamp)
            case folder
            case symlink(target: [UInt8])
        }

        var path: ItemPath
        var kind: Kind
        var mode: UInt16
        var extended: [[UInt8]: [UInt8]]

        var tokenCount: Int { if case .file(let tokens, _) = kind { tokens } else { 0 } }
    }

    /// Ascending by path.
    var elements: [Element]

    /// Each with where its tokens begin in the content.
    var files: [(element: Element, start: Int)] {
        var start = 1
        return elements.compactMap { element in
            guard case .file(let tokens, _) = element.kind else { return nil }
            defer { start += tokens }
            return (element, start)
        }
    }
}

/// The tokens that stand for what packages are made of. No program ever writes one.
struct SimIndexes {
    private static let first: UInt64 = 1 << 40
    private var tokens: [SimPackage: UInt64] = [:]
    private var packages: [SimPackage] = []

    mutating func token(_ package: SimPackage) -> UInt64 {
        if let known = tokens[package] { return known }
        let token = Self.first + UInt64(packages.count)
        tokens[package] = token
        packages.append(package)
        return token
    }

    func package(_ token: UInt64) -> SimPackage? {
        guard token >= Self.first, token - Self.first < UInt64(packages.count) else { return nil }
        return packages[Int(token - Self.first)]
    }
}

/// Packages: folders, with all that lies in them.
extension SimDisk {
    struct Element {
        var path: ItemPath
        var place: LocalPlace
        var number: UInt64
    }

    /// All that lies in a package, ascending by path.
    func elements(of package: UInt64) -> [Element] {
        var elements: [Element] = []
        walk(package, .root) { elements.append(Element(path: $0, place: $1, number: $2)) }
        return elements.sorted { $0.path < $1.path }
    }

    func files(of package: UInt64) -> [Element] { elements(of: package).filter { self[$0.number]?.kind == .file } }

    func package(_ number: UInt64) -> SimPackage { SimPackage(elements: elements(of: number).compactMap(described)) }

    private func described(_ element: Element) -> SimPackage.Element? {
        guard let inode = self[element.number], let state = state(element.number) else { return nil }
        let kind: SimPackage.Element.Kind
        switch inode.kind {
        case .folder: kind = .folder
        case .symlink: kind = .symlink(target: inode.target)
        case .file:
            kind = .file(tokens: Int(state.size / SimContent.tokenBytes), modified: state.modified)
        case .package, .other: return nil
        }
        return SimPackage.Element(
            path: element.path,
            kind: kind,
            mode: inode.kind == .symlink ? 0 : state.mode,
            extended: inode.extended
        )
    }

    /// As the backing tree has it (`PackageTree`).
    func packageState(_ number: UInt64) -> LocalState? {
        guard var state = state(number) else { return nil }
        var facts = PackageFacts(
            fingerprint: Timestamp(nanoseconds: 0),
            datalessElements: 0,
            bytes: 0,
            localBytes: 0,
            newestChange: state.changed
        )
        var modified = Timestamp(nanoseconds: 0)
        var size = SimContent.tokenBytes
        var sum: UInt64 = 1
        for element in elements(of: number) {
            guard let inner = self.state(element.number), let inode = self[element.number] else { continue }
            sum &+= Self.hash(element, inner, inode)
            facts.newestChange = max(facts.newestChange, inner.changed)
            guard inner.kind == .file else { continue }
            modified = max(modified, inner.modified)
            size += inner.size
            facts.bytes += inner.size
            if inner.isDataless { facts.datalessElements += 1 } else { facts.localBytes += inner.size }
        }
        facts.fingerprint = Timestamp(nanoseconds: Int64(max(1, sum >> 1)))
        state.kind = .package
        state.size = size
        state.modified = modified
        state.changed = facts.newestChange
        state.linkCount = 1
        state.facts = facts
        return state
    }

    private static func hash(_ element: Element, _ state: LocalState, _ inode: SimInode) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        func add(_ word: UInt64) {
            hash = (hash ^ word) &* 0x100_0000_01b3
            hash ^= hash >> 29
        }
        for byte in element.path.bytes { add(UInt64(byte)) }
        add(UInt64(state.kind.rawValue))
        add(element.number)
        add(UInt64(state.mode))
        for (name, value) in inode.extended.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            for byte in name + value { add(UInt64(byte)) }
        }
        guard state.kind == .file else { return hash }
        add(UInt64(bitPattern: state.size))
        add(UInt64(bitPattern: state.modified.nanoseconds))
        return hash
    }

    // MARK: Making

    /// What becomes of a file of a package that is made.
    enum Source {
        /// The same inode as in an older state.
        case linked(UInt64)
        case dataless(Placeholder)
        case whole([UInt64])
    }

    /// Makes a package that is at no place yet.
    /// - Parameter source: of each file that is not empty.
    mutating func make(
        _ package: SimPackage,
        _ attributes: ItemAttributes,
        at time: Timestamp,
        source: (SimPackage.Element, _ start: Int) -> Source
    ) -> UInt64 {
        let root = add(
            SimInode(
                kind: .folder,
                mode: attributes.mode,
                extended: attributes.extended,
                modified: attributes.modified,
                changed: time
            )
        )
        var folders: [ItemPath: UInt64] = [.root: root]
        var start = 1
        for element in package.elements {
            guard let folder = folders[element.path.parent], let name = element.path.last else { continue }
            var inode = SimInode(
                kind: .folder,
                mode: element.mode,
                extended: element.extended,
                modified: time,
                changed: time
            )
            var linked: UInt64?
            switch element.kind {
            case .folder: break
            case .symlink(let target):
                inode.kind = .symlink
                inode.target = target
                inode.mode = 0o777
            case .file(let count, let modified):
                inode.kind = .file
                inode.modified = modified
                if count > 0 {
                    switch source(element, start) {
                    case .linked(let number): linked = number
                    case .dataless(let placeholder): inode.placeholder = placeholder
                    case .whole(let tokens): inode.tokens = tokens
                    }
                }
                start += count
            }
            let number: UInt64
            if let linked {
                number = linked
                self[linked]?.links += 1
                // A link moves the change time.
                self[linked]?.changed = time
            } else {
                number = add(inode)
            }
            self[folder]?.entries[name] = number
            if element.kind == .folder { folders[element.path] = number }
        }
        return root
    }
}
