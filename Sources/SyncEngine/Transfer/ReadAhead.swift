import Chunking
import Driver
import EngineCore
import Logging
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// Brings the small dataless files beside one that is being read: many with one request, and with one sync of the disk.
///
/// 1. `missed`: a program had to wait for a file; `ReadingWalk` decides whether others of its folder follow.
/// 2. They are fetched into the same objects through which programs read them: who opens one meanwhile waits for this fetch, and begins
///    none of its own.
/// 3. They become whole together, and are written down in one transaction.
/// 4. `used`: when most of them have been opened, the next ones follow before anybody waits for them.
final class ReadAhead: Sendable {
    /// Files up to this size, in bytes: what is larger has more to gain from being asked for alone.
    static let smallFile: Int64 = 64 * 1024
    /// Of one request.
    private static let bytesAtOnce: Int64 = 8 * 1024 * 1024

    private struct State {
        var walk = ReadingWalk()
        var arrivals = ArrivalReading()
        /// One at a time for a folder: what misses meanwhile is about to come.
        var running: Set<ItemID> = []
        var last: Batch?
        /// Counts how often all that is about to begin was called off.
        var callings = 0
        var mount: Mount?
        weak var host: EngineHost?
    }

    /// What was brought last.
    private struct Batch {
        /// The last of them by name.
        var place: Place
        var unread: Set<InodeKey>
        let count: Int
        /// The next ones have been asked for, or there are none.
        var isFollowed: Bool

        init(_ place: Place, _ keys: Set<InodeKey>, isAll: Bool) {
            (self.place, unread, count, isFollowed) = (place, keys, keys.count, isAll)
        }

        var isRead: Bool { unread.count * 2 <= count }
    }

    /// Guards memory only; a leaf in the order of locks.
    private let state = Mutex(State())
    /// Somebody asks which of the last batch are read: else no open need ask.
    private let isCounting = Atomic(false)
    private let downloader: Downloader
    private let replica: Replica
    private let restraint: FetchingRestraint
    private let logger: Logger
    private let started = ContinuousClock.now

    init(downloader: Downloader, replica: Replica, restraint: FetchingRestraint, logger: Logger) {
        self.downloader = downloader
        self.replica = replica
        self.restraint = restraint
        self.logger = logger
    }

    func attach(_ mount: Mount, _ host: EngineHost) {
        state.withLock { state in
            state.mount = mount
            state.host = host
        }
    }

    /// Nothing is begun any more.
    func detach() { state.withLock { $0.mount = nil } }

    /// What has not begun by now does not begin: somebody gives up contents. What has is known to the filler.
    func callOff() {
        state.withLock { state in
            state.callings += 1
            // What is only now closed begins nothing either.
            state.last = nil
        }
    }

    /// A program waits for a small file of that place.
    func missed(_ place: Place) {
        guard !restraint.isOn else { return }
        let now = now
        begin(after: place) { state in
            state.arrivals.missed(in: place.parent, at: now)
            guard !state.running.contains(place.parent) else { return 0 }
            return state.walk.missed(in: place.parent, at: now, isRead: state.last?.isRead ?? false)
        }
    }

    /// A program has opened or closed a file.
    func used(_ key: InodeKey) {
        guard isCounting.load(ordering: .relaxed) else { return }
        let isRead = state.withLock { state in
            guard state.last?.unread.remove(key) != nil, let last = state.last else { return false }
            if last.unread.isEmpty { isCounting.store(false, ordering: .relaxed) }
            return last.isRead
        }
        if isRead { follow() }
    }

    /// Brings what comes after the last batch, once, if most of that has been read.
    private func follow() {
        guard !restraint.isOn else { return }
        let place: Place? = state.withLock { state in
            guard let last = state.last, last.isRead, !last.isFollowed, !state.running.contains(last.place.parent)
            else { return nil }
            state.last?.isFollowed = true
            return last.place
        }
        guard let place else { return }
        let now = now
        begin(after: place) { state in
            state.arrivals.missed(in: place.parent, at: now)
            return state.walk.readMost(of: place.parent, at: now)
        }
    }

    /// - Parameter count: how many of them; called while the state is locked.
    private func begin(after place: Place, _ count: (inout sending State) -> Int) {
        let begun: (count: Int, mount: Mount, host: EngineHost, callings: Int)? = state.withLock { state in
            guard let mount = state.mount, let host = state.host else { return nil }
            let count = count(&state)
            guard count > 0 else { return nil }
            state.running.insert(place.parent)
            return (count, mount, host, state.callings)
        }
        guard let begun else { return }
        Task {
            await bring(begun.count, after: place, begun.mount, begun.host, unless: begun.callings)
            _ = state.withLock { $0.running.remove(place.parent) }
            follow()
        }
    }

    /// Small new files are about to appear in these folders, one for each.
    /// - Returns: how many of them come with their content.
    func arrived(in folders: [ItemID]) -> Int {
        guard !restraint.isOn else { return 0 }
        let now = now
        return state.withLock { $0.arrivals.arrived(folders, at: now) }
    }

    private var now: Instant { Instant(ContinuousClock.now - started) }

    private func bring(
        _ count: Int,
        after place: Place,
        _ mount: Mount,
        _ host: EngineHost,
        unless callings: Int
    ) async {
        do {
            let (found, isAll) = try await BlockingPool.shared.run { [self] in
                try lookFor(count, after: place, mount, host)
            }
            let accepted = host.filler.beginAhead(found.map(\.file))
            defer { host.filler.endAhead(accepted) }
            let wanted = Set(accepted.map(ObjectIdentifier.init))
            let files = found.filter { wanted.contains(ObjectIdentifier($0.file)) }
            guard let first = files.first, let last = files.last else { return }
            let batch = Batch(Place(parent: place.parent, name: last.name), Set(files.map(\.file.key)), isAll: isAll)
            // After they are known to be coming, so that they are seen to be, or this is seen.
            let isCalledOff = state.withLock { state in
                guard state.callings == callings else { return true }
                state.last = batch
                isCounting.store(true, ordering: .relaxed)
                return false
            }
            guard !isCalledOff else { return }
            let destination = JoinedContents(
                files.map { one in
                    let missing = ChunkIndex(one.manifest).entries(
                        covering: one.file.missing(in: 0..<one.manifest.size)
                    )
                    return (one.file, missing, one.manifest.size)
                },
                written: host.filler.served
            )
            let token = downloader.meter.begin(
                first.item,
                path: place.name.description,
                direction: .download,
                total: destination.size
            )
            defer { downloader.meter.end(token) }
            try await downloader.fetch(destination.entries, into: destination, token: token, written: {})
            try await host.filler.finish(files.map(\.file))
        } catch {
            // Who needs them asks for each, and is told why it cannot be had.
            logger.debug("nothing is read ahead", metadata: ["why": "\(error)"])
        }
    }

    struct Found: Sendable {
        var item: ItemID
        var name: Name
        var file: PlaceholderFile
        var manifest: Manifest
    }

    /// Blocks on the disk.
    /// - Returns: what was found, and whether the folder has no more.
    private func lookFor(
        _ count: Int,
        after place: Place,
        _ mount: Mount,
        _ host: EngineHost
    ) throws -> ([Found], isAll: Bool) {
        guard try replica.tree.freeBytes() > ContentFiller.roomLeft + ContentFiller.largestWindow,
            let key = place.parent == .root
                ? replica.tree.rootKey : try replica.database.synced(place.parent)?.local?.key
        else { return ([], true) }
        let folder = try replica.tree.openFolder(key: key)
        var bytes: Int64 = 0
        var found: [Found] = []
        let files = try replica.database.datalessFiles(after: place, upTo: Self.smallFile, limit: count)
        for one in files {
            bytes += one.file.size
            if bytes > Self.bytesAtOnce { return (found, false) }
            if !one.isHere {
                guard try host.populate(key, one.name) else { continue }
                // The kernel may have been told that there is none.
                mount.nameAppeared(in: key, one.name)
            }
            guard let file = try mount.placeholder(in: folder.raw, one.name, one.file.revision),
                file.placeholder.size == one.manifest.size, let content = one.file.content,
                one.manifest.isRight(content, one.file.size, downloader.key)
            else { continue }
            found.append(Found(item: one.id, name: one.name, file: file, manifest: one.manifest))
        }
        return (found, files.count < count)
    }
}
