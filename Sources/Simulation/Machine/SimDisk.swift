import UbiquityModel

/// A file, folder or link on a simulated disk.
struct SimInode {
    var kind: LocalKind
    /// A file's content: each is one chunk, and never written twice.
    var tokens: [UInt64] = []
    var target: [UInt8] = []
    var entries: [Name: UInt64] = [:]
    var mode: UInt16
    var extended: [[UInt8]: [UInt8]] = [:]
    var modified: Timestamp
    var changed: Timestamp
    var placeholder: Placeholder?
    /// Its names: a file of a package has two while the next state of that is made.
    var links = 1
    /// Programs that have it open for writing.
    var writers = 0
    /// Writing was reported and not collected.
    var isDirty = false

    var size: Int64 { SimContent.size(of: tokens) }
}

/// How contents of tokens are named.
enum SimContent {
    static let tokenBytes: Int64 = 16

    static func size(of tokens: [UInt64]) -> Int64 { Int64(tokens.count) * tokenBytes }

    static func chunk(_ token: UInt64) -> ChunkID { digest([token, 1, 0, 0]) }
    static func token(_ chunk: ChunkID) -> UInt64 { chunk.words.0 }

    static func content(_ tokens: [UInt64]) -> ContentID {
        var words: [UInt64] = [UInt64(tokens.count), 2, 3, 4]
        for (index, token) in tokens.enumerated() {
            var mixed = SimRandom(seed: token &+ UInt64(index) &* 0x9E37_79B9)
            for word in words.indices { words[word] = (words[word] &* 31) ^ mixed.next() }
        }
        return digest(words)
    }

    static func manifest(_ tokens: [UInt64]) -> Manifest {
        Manifest(entries: tokens.map { Manifest.Entry(chunk: chunk($0), length: UInt32(tokenBytes)) })
    }

    private static func digest<Kind>(_ words: [UInt64]) -> Digest<Kind> {
        let bytes = words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) } }
        guard let digest = Digest<Kind>(bytes: bytes) else { preconditionFailure("four words are 32 bytes") }
        return digest
    }
}

/// The container's backing tree and its staging folder, with an inode for each file.
struct SimDisk {
    static let root: UInt64 = 1
    private(set) var inodes: [UInt64: SimInode] = [:]
    var staging: [String: UInt64] = [:]
    /// Whether files say how many names they have. Those of a package have more while the next state of that is made.
    var tellsLinks = false
    private var count: UInt64 = 1

    init(at time: Timestamp) {
        inodes[Self.root] = SimInode(kind: .folder, mode: 0o755, modified: time, changed: time)
    }

    subscript(number: UInt64) -> SimInode? {
        get { inodes[number] }
        _modify { yield &inodes[number] }
    }

    static func key(_ number: UInt64) -> InodeKey { InodeKey(tag: 1, words: (number, 0, 0)) }
    static func number(_ key: InodeKey) -> UInt64 { key.words.0 }

    mutating func add(_ inode: SimInode) -> UInt64 {
        count += 1
        inodes[count] = inode
        return count
    }

    /// Every content that is on it.
    var tokens: Set<UInt64> { Set(inodes.values.flatMap(\.tokens)) }

    /// Those that stay when the process ends: nobody publishes what it has staged.
    var lastingTokens: Set<UInt64> {
        guard !staging.isEmpty else { return tokens }
        var disk = self
        disk.dropStaged()
        return disk.tokens
    }

    /// What its links lead to.
    var targets: Set<[UInt8]> { Set(inodes.values.lazy.filter { $0.kind == .symlink }.map(\.target)) }

    // MARK: What was

    /// All of it is as it was; no inode is ever another one.
    mutating func goBack(to former: SimDisk) {
        let count = max(count, former.count)
        self = former
        self.count = count
    }

    /// Files that were written in place since then have some of what they got: from the beginning up to somewhere.
    mutating func tear(toward newer: SimDisk, _ random: inout SimRandom) {
        for number in inodes.keys.sorted() {
            guard let old = inodes[number], let new = newer.inodes[number], old.kind == .file, old.placeholder == nil,
                new.placeholder == nil, old.tokens != new.tokens, random.happens(70)
            else { continue }
            let count = random.below(new.tokens.count + 1)
            inodes[number]?.tokens = Array(new.tokens.prefix(count) + old.tokens.dropFirst(count))
            inodes[number]?.modified = new.modified
            inodes[number]?.changed = new.changed
        }
    }

    /// The same tree, of new inodes.
    mutating func renumber() {
        var numbers: [UInt64: UInt64] = [:]
        for number in inodes.keys.sorted() where number != Self.root {
            count += 1
            numbers[number] = count
        }
        var renumbered: [UInt64: SimInode] = [:]
        for (number, var inode) in inodes {
            inode.entries = inode.entries.compactMapValues { numbers[$0] }
            renumbered[numbers[number] ?? number] = inode
        }
        inodes = renumbered
    }

    func entry(_ place: LocalPlace) -> UInt64? { inodes[Self.number(place.folder)]?.entries[place.name] }

    /// Times of a disk are those of its clock's ticks.
    static let tick = Duration.milliseconds(4)

    static func tick(_ time: Timestamp) -> Timestamp {
        Timestamp(nanoseconds: time.nanoseconds / 4_000_000 * 4_000_000)
    }

    func state(_ number: UInt64) -> LocalState? {
        guard let inode = inodes[number] else { return nil }
        let placeholder = inode.placeholder
        return LocalState(
            key: Self.key(number),
            kind: inode.kind,
            size: placeholder?.size ?? (inode.kind == .symlink ? Int64(inode.target.count) : inode.size),
            modified: placeholder?.modified ?? inode.modified,
            changed: inode.changed,
            mode: placeholder?.mode ?? inode.mode,
            linkCount: tellsLinks && inode.kind == .file ? UInt64(inode.links) : 1,
            placeholder: placeholder
        )
    }

    // MARK: Names

    mutating func link(_ number: UInt64, at place: LocalPlace, _ time: Timestamp) {
        let folder = Self.number(place.folder)
        inodes[folder]?.entries[place.name] = number
        touchFolder(folder, time)
    }

    mutating func unlink(_ place: LocalPlace, _ time: Timestamp) {
        let folder = Self.number(place.folder)
        if let number = inodes[folder]?.entries.removeValue(forKey: place.name) { drop(number, time) }
        touchFolder(folder, time)
    }

    /// A further name.
    mutating func addName(_ number: UInt64, at place: LocalPlace, _ time: Timestamp) {
        link(number, at: place, time)
        inodes[number]?.links += 1
        inodes[number]?.changed = Self.tick(time)
    }

    /// A name over what is at the other place.
    mutating func rename(_ from: LocalPlace, to: LocalPlace, _ time: Timestamp) {
        guard let number = inodes[Self.number(from.folder)]?.entries.removeValue(forKey: from.name) else { return }
        touchFolder(Self.number(from.folder), time)
        publish(number, at: to, time)
    }

    mutating func publish(_ number: UInt64, at place: LocalPlace, _ time: Timestamp) {
        if let other = entry(place) { drop(other, time) }
        link(number, at: place, time)
        // As most filesystems have it: a rename moves the change time.
        inodes[number]?.changed = Self.tick(time)
    }

    mutating func exchange(_ one: LocalPlace, _ other: LocalPlace, _ time: Timestamp) {
        guard let first = entry(one), let second = entry(other) else { return }
        link(second, at: one, time)
        link(first, at: other, time)
        for number in [first, second] { inodes[number]?.changed = Self.tick(time) }
    }

    private mutating func touchFolder(_ number: UInt64, _ time: Timestamp) {
        inodes[number]?.modified = Self.tick(time)
        inodes[number]?.changed = Self.tick(time)
    }

    private mutating func drop(_ number: UInt64, _ time: Timestamp) {
        drop(number)
        if tellsLinks { inodes[number]?.changed = Self.tick(time) }
    }

    /// One of its names is gone, and with the last one all that lies in it.
    mutating func drop(_ number: UInt64) {
        guard let inode = inodes[number] else { return }
        guard inode.links == 1 else {
            inodes[number]?.links -= 1
            return
        }
        for child in inode.entries.values.sorted() { drop(child) }
        inodes[number] = nil
    }

    /// Nobody publishes what was made beside the tree.
    mutating func dropStaged() {
        for number in staging.values.sorted() { drop(number) }
        staging = [:]
    }

    // MARK: All of it

    /// Everything below the root, in the order of the paths.
    func walk(_ body: (ItemPath, LocalPlace, UInt64) -> Void) {
        walk(Self.root, .root, body)
    }

    func walk(_ folder: UInt64, _ path: ItemPath, _ body: (ItemPath, LocalPlace, UInt64) -> Void) {
        guard let entries = inodes[folder]?.entries else { return }
        for (name, number) in entries.sorted(by: { $0.key < $1.key }) {
            body(path.appending(name), LocalPlace(folder: Self.key(folder), name: name), number)
            if inodes[number]?.kind == .folder { walk(number, path.appending(name), body) }
        }
    }
}
