internal import CLinux
internal import Glibc
internal import Synchronization

/// The folder of packs: their names, and the open files for reading.
final class PackFolder: Sendable {
    private struct State {
        /// Of each pack, where what is durable in it ends.
        var ends: [UInt64: UInt64] = [:]
        /// New packs have no lower number. Known when it is known which packs are there.
        var first: UInt64 = 0
        /// Open for reading; the least recently used at the front.
        var open: [(number: UInt64, file: OpenFile)] = []
        /// Held as long as the store is open: two servers would write over each other's records.
        var lock: OpenFile?
    }

    private static let openLimit = 64

    private let path: String
    private let firstPack: UInt64
    private let gap: UInt64
    private let directory: OpenFile
    /// Guards the names, the open files and the lock. A leaf: no system call is made under it.
    private let state = Mutex(State())

    init(path: String, firstPack: UInt64, gap: UInt64) throws(ChunkStoreError) {
        self.path = path
        self.firstPack = firstPack
        self.gap = gap
        if mkdir(path, 0o700) != 0 {
            let code = errno
            if code != EEXIST { try ChunkStoreError.check(-code, "making \(path)") }
        }
        directory = try OpenFile(path, flags: O_RDONLY | O_DIRECTORY)
        let lock = try OpenFile("\(path)/lock", flags: O_RDWR | O_CREAT)
        // A server that was killed holds it until its last file is closed, a moment after it is gone from the list of processes.
        let status = clinux_try_lock_for(lock.descriptor, 2000)
        guard status >= 0 else {
            if status == -EWOULDBLOCK { throw .inUse(path) }
            throw .failed("locking \(path)", errno: -status)
        }
        state.withLock { $0.lock = lock }
    }

    /// Lets another server have the folder.
    func release() {
        let (lock, files) = state.withLock { state in
            defer {
                state.lock = nil
                state.open = []
            }
            return (state.lock, state.open)
        }
        if let lock { _ = clinux_unlock(lock.descriptor) }
        // Closed here, outside of the lock.
        withExtendedLifetime((lock, files)) {}
    }

    /// Reads which packs are there. Returns the newest.
    func scan() throws(ChunkStoreError) -> UInt64? {
        guard let stream = opendir(path) else {
            throw .failed("listing \(path)", errno: errno)
        }
        defer { closedir(stream) }
        var ends: [UInt64: UInt64] = [:]
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            // As it is written here and not otherwise: another file of that number would be taken for it.
            if name.hasSuffix(Self.suffix), let number = UInt64(name.dropLast(Self.suffix.count), radix: 16),
                name == Self.name(number)
            {
                ends[number] = 0
            }
        }
        for number in ends.keys { ends[number] = try size(number) }
        let newest = ends.keys.max()
        let first = firstNumber(after: newest)
        state.withLock { state in
            state.ends = ends
            state.first = first
        }
        return newest
    }

    /// Where the clock is behind the packs, it may be behind others that are lost, to which the catalogue still leads: a pack of such a
    /// number would be taken for one of them.
    private func firstNumber(after newest: UInt64?) -> UInt64 {
        guard let newest, newest >= firstPack else { return firstPack }
        let (number, isOver) = newest.addingReportingOverflow(gap)
        // The catalogue keeps numbers with a sign. That far, after millions of openings, they go on one by one.
        return isOver || number > UInt64(Int64.max) ? newest : number
    }

    func contains(_ number: UInt64) -> Bool { state.withLock { $0.ends[number] != nil } }

    func contains(_ number: UInt64, upTo end: UInt64) -> Bool {
        state.withLock { state in state.ends[number].map { $0 >= end } ?? false }
    }

    /// The pack has so much now, durably.
    func note(end: UInt64, of number: UInt64) { state.withLock { $0.ends[number] = end } }

    /// Whether it is there, and not the newest: only that is added to, and it stays, so that no number is used twice.
    func isClosed(_ number: UInt64) -> Bool {
        state.withLock { state in
            state.ends[number] != nil && state.ends.keys.contains { $0 > number }
        }
    }

    func remove(_ number: UInt64) throws(ChunkStoreError) {
        // Who reads from it goes on with the open file.
        let (end, open) = state.withLock { state -> (UInt64?, OpenFile?) in
            let index = state.open.firstIndex { $0.number == number }
            return (state.ends.removeValue(forKey: number), index.map { state.open.remove(at: $0).file })
        }
        withExtendedLifetime(open) {}
        if unlink(path(number)) != 0 {
            let code = errno
            if code != ENOENT {
                state.withLock { $0.ends[number] = end }
                try ChunkStoreError.check(-code, "removing \(path(number))")
            }
        }
        try directory.synchronize()
    }

    /// What the disk has room for, in bytes.
    func freeBytes() -> Int64? {
        var status = statvfs()
        guard fstatvfs(directory.descriptor, &status) == 0 else { return nil }
        let (bytes, isOver) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return isOver ? .max : Int64(clamping: bytes)
    }

    /// A new, empty and durable pack.
    func makePack() throws(ChunkStoreError) -> (number: UInt64, file: OpenFile) {
        let (newest, first) = state.withLock { ($0.ends.keys.max() ?? 0, $0.first) }
        let (next, isOver) = newest.addingReportingOverflow(1)
        guard !isOver else { throw .failed("numbering another pack in \(path)", errno: EOVERFLOW) }
        let number = max(next, first)
        let file = try OpenFile(path(number), flags: O_RDWR | O_CREAT | O_EXCL)
        do {
            try file.write(PackHeader.bytes, at: 0)
            try file.synchronize()
            try directory.synchronize()
        } catch {
            unlink(path(number))
            throw error
        }
        note(end: UInt64(PackHeader.count), of: number)
        return (number, file)
    }

    func open(_ number: UInt64, forWriting: Bool) throws(ChunkStoreError) -> OpenFile {
        try OpenFile(path(number), flags: forWriting ? O_RDWR : O_RDONLY)
    }

    /// For reading, from the cache of open packs.
    func reading(_ number: UInt64) throws(ChunkStoreError) -> OpenFile {
        let cached = state.withLock { state -> OpenFile? in
            guard let index = state.open.firstIndex(where: { $0.number == number }) else { return nil }
            let entry = state.open.remove(at: index)
            state.open.append(entry)
            return entry.file
        }
        if let cached { return cached }
        guard contains(number) else { throw .missing(pack: number) }
        let file = try open(number, forWriting: false)
        // Closing a file is a system call: the one that has to go is released outside of the lock.
        let evicted = state.withLock { state -> OpenFile? in
            // It may have been removed meanwhile, and listed here would hold its room on the disk; or another reader has opened it too.
            guard state.ends[number] != nil, !state.open.contains(where: { $0.number == number }) else { return nil }
            state.open.append((number, file))
            return state.open.count > Self.openLimit ? state.open.removeFirst().file : nil
        }
        withExtendedLifetime(evicted) {}
        return file
    }

    private static let suffix = ".pack"

    private static func name(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return "\(String(repeating: "0", count: 16 - digits.count))\(digits)\(suffix)"
    }

    private func size(_ number: UInt64) throws(ChunkStoreError) -> UInt64 {
        var status = clinux_status()
        try ChunkStoreError.check(
            clinux_status_at(directory.descriptor, Self.name(number), &status),
            "looking at \(path(number))"
        )
        return UInt64(max(status.size, 0))
    }

    private func path(_ number: UInt64) -> String { "\(path)/\(Self.name(number))" }
}
