import Chunking
import CloudClient
import CloudProtocol
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// Where verified content is written.
protocol ContentDestination: Sendable {
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno)
}

extension PlaceholderFile: ContentDestination {}

/// Fetches chunks from the cloud, verifies them and writes them where they belong.
struct Downloader: Sendable {
    /// Chunks of one request: at most this many bytes of content.
    static let requestBytes: Int64 = 32 * 1024 * 1024
    /// A server that restarts is back within moments: a read does not fail for that.
    static let attempts = 4
    /// A server that takes longer to be not reached than this is not about to be back: who reads learns it within 10 s, of which one
    /// attempt may take half.
    static let timeForAttempts = Duration.seconds(4)

    let container: ContainerID
    let key: ContainerKey
    let cloud: any Cloud
    let replica: Replica
    let meter: TransferMeter
    let gate: TransferGate
    let known = KnownRevisions()
    private let packages = PackageChunksCache()

    // MARK: What to fetch

    /// The item that a placeholder stands for, and its chunks.
    func source(of file: PlaceholderFile) async throws(FillError) -> ContentFiller.Source {
        let placeholder = file.placeholder
        let isPart = placeholder.offset != nil
        // The manifest of a large package takes long to read, and each of its files comes here.
        let remembered = isPart ? packages.chunks(of: placeholder.revision) : nil
        var source = try await source(
            of: placeholder.revision,
            file.key,
            isPart: isPart,
            needsManifest: remembered == nil
        )
        guard let offset = placeholder.offset, let manifest = source.manifest else { return source }
        let chunks = remembered ?? packages.chunks(of: placeholder.revision, manifest)
        guard let part = chunks.part(from: offset, size: placeholder.size) else {
            throw .corrupted("the package has no file there")
        }
        source.manifest = Manifest(entries: Array(part))
        return source
    }

    /// - Parameters:
    ///   - isPart: of a package's content.
    ///   - needsManifest: false: what it says is known, and an empty one stands for it.
    private func source(
        of revision: RevisionID,
        _ key: InodeKey,
        isPart: Bool,
        needsManifest: Bool
    ) async throws(FillError) -> ContentFiller.Source {
        let replica = replica
        let noted = known.item(of: revision)
        let found = try await disk { () -> (item: ItemID, place: Place, agreed: FileContent?, remote: RemoteItem?)? in
            // A file in a package is no item: whose it is, the package's row tells.
            let rows =
                isPart ? try replica.database.syncedPackages(revision: revision) : try replica.database.synced(key: key)
            guard let row = rows.first(where: { Self.file($0.content, revision) != nil }) else {
                // The package has another revision by now: what was moved out of it, or was open meanwhile, stands for what it was.
                if isPart, let former = try Self.former(revision, in: replica) { return former }
                // What a lookup had made when the service died has no row before the first pass, and nobody who noted it.
                guard
                    let remote = try noted.flatMap({ try replica.database.remote($0) })
                        ?? replica.database.remote(revision: revision)
                        // Its item has another revision by now, as a restored server tells: this one may still be a version of it.
                        ?? (isPart ? nil : rows.first).flatMap({ try replica.database.remote($0.id) })
                else { return nil }
                return (remote.id, remote.place, nil, remote)
            }
            let agreed = Self.file(row.content, revision)
            if isPart, agreed?.content == nil, let former = try Self.former(revision, in: replica) { return former }
            return (row.id, row.place, agreed, try replica.database.remote(row.id))
        }
        guard let found else { throw .gone }
        // The row of an announced item knows no content; the remote one may, by now.
        let current = found.remote.flatMap { Self.file($0.content, revision) }
        guard let content = found.agreed?.content == nil ? current ?? found.agreed : found.agreed else {
            return try await sourceOfOldRevision(found.item, found.place, revision)
        }
        guard let id = content.content else {
            if let remote = found.remote {
                // It will never come if the file was deleted before it was sent.
                if remote.isDeleted { throw current == nil ? .gone : .withdrawn }
                // Nor if it was sent with another content; but what an apply left half-way may still be a version.
                if current == nil { return try await sourceOfOldRevision(found.item, found.place, revision) }
            }
            let author = found.remote?.author ?? ""
            return ContentFiller.Source(item: found.item, place: found.place, manifest: nil, author: author)
        }
        let manifest = needsManifest ? try await manifest(of: id, size: content.size) : Manifest()
        return ContentFiller.Source(item: found.item, place: found.place, manifest: manifest)
    }

    /// What was agreed on before. A server that was restored knows nothing of it any more: others may have brought it back as another
    /// revision.
    private static func former(
        _ revision: RevisionID,
        in replica: Replica
    ) throws -> (item: ItemID, place: Place, agreed: FileContent?, remote: RemoteItem?)? {
        guard let former = try replica.database.former(revision) else { return nil }
        let remote = try replica.database.remote(former.item)
        guard let place = try replica.database.synced(former.item)?.place ?? remote?.place else { return nil }
        return (former.item, place, former.file, remote)
    }

    private static func file(_ content: ItemContent, _ revision: RevisionID) -> FileContent? {
        if case .file(let file) = content, file.revision == revision { return file }
        return nil
    }

    /// A newer revision has taken the item's place while somebody still has the old one open.
    private func sourceOfOldRevision(
        _ item: ItemID,
        _ place: Place,
        _ revision: RevisionID
    ) async throws(FillError) -> ContentFiller.Source {
        let versions: [ItemVersion]
        do { versions = try await cloud.versions(container, item: item) } catch { throw .cloud(error) }
        guard let version = versions.first(where: { $0.revision == revision }) else { throw .superseded }
        let manifest = try await manifest(of: version.content, size: version.size)
        return ContentFiller.Source(item: item, place: place, manifest: manifest)
    }

    /// A content's chunks: remembered, or asked for and verified against its name.
    /// - Parameter former: what the item had before, of which the new content may have most chunks.
    func manifest(
        of content: ContentID,
        size: Int64,
        following former: ContentID? = nil
    ) async throws(FillError) -> Manifest {
        let (replica, key) = (replica, key)
        let (known, base) = try await disk { () -> (Manifest?, KnownManifest?) in
            // What came along with an item is looked at when it is needed.
            if let known = try replica.database.manifest(content), known.isRight(content, size, key) {
                return (known, nil)
            }
            guard let former, let manifest = try replica.database.manifest(former) else { return (nil, nil) }
            return (nil, KnownManifest(content: former, manifest: manifest))
        }
        if let known { return known }
        // A difference that does not fit what is here gives way to the whole.
        if let base, let answer = try? await cloud.manifests(container, contents: [content], base: base),
            let manifest = answer[content], manifest.isRight(content, size, key)
        {
            return try await remember(manifest, of: content)
        }
        let answer: [ContentID: Manifest]
        do { answer = try await cloud.manifests(container, contents: [content], base: nil) } catch {
            throw .cloud(error)
        }
        guard let manifest = answer[content] else { throw .gone }
        guard manifest.isRight(content, size, key) else {
            throw .corrupted("the manifest of \(content) is not what its name says")
        }
        return try await remember(manifest, of: content)
    }

    private func remember(_ manifest: Manifest, of content: ContentID) async throws(FillError) -> Manifest {
        let replica = replica
        try await disk { try replica.database.write(manifests: [content: manifest], replacing: true) }
        return manifest
    }

    // MARK: Packages

    /// The chunks of files in a package whose content is not here: the cloud has them. Of what was an item until it was moved there it may
    /// be that nobody has it.
    func chunks(
        of placeholders: [(placeholder: Placeholder, key: InodeKey)]
    ) async throws(FillError) -> DatalessParts {
        var parts = DatalessParts()
        var known: [RevisionID: PackageChunks] = [:]
        for (placeholder, key) in placeholders {
            let revision = placeholder.revision
            let isPart = placeholder.offset != nil
            if known[revision] == nil {
                do throws(FillError) {
                    known[revision] = PackageChunks(try await sentManifest(revision, key, isPart: isPart))
                } catch {
                    guard !isPart else { throw error }
                    switch error {
                    case .withdrawn, .superseded, .authorGone: parts.lost.insert(key)
                    // Whose it was may have been forgotten here, while the cloud has it.
                    case .gone, .cloud, .system, .corrupted, .unsent, .wouldWait: throw error
                    }
                    continue
                }
            }
            if !isPart, let size = known[revision]?.size, size != placeholder.size {
                // It grew or shrank between its announcement and its sending.
                parts.outgrown[key] = size
                continue
            }
            guard let part = known[revision]?.part(from: placeholder.offset ?? 0, size: placeholder.size) else {
                throw .corrupted("what a file stands for is not in the revision that it is of")
            }
            parts.add(placeholder, part)
        }
        return parts
    }

    private func sentManifest(_ revision: RevisionID, _ key: InodeKey, isPart: Bool) async throws(FillError) -> Manifest
    {
        let source = try await source(of: revision, key, isPart: isPart, needsManifest: true)
        if let manifest = source.manifest { return manifest }
        // Packages are not announced.
        guard !isPart else { throw .gone }
        throw try await isGone(author: source.author) ? .authorGone(source.author) : .unsent(author: source.author)
    }

    /// What a package is made of, which is the beginning of its content.
    func packageIndex(_ manifest: Manifest) async throws(FillError) -> PackageIndex {
        let index = try await indexAtBeginning(of: manifest)
        guard PackageChunks(manifest).areThose(of: index) else { throw .corrupted(PackageChunks.areOthers) }
        return index
    }

    private func indexAtBeginning(of manifest: Manifest) async throws(FillError) -> PackageIndex {
        let entries = ChunkIndex(manifest).entries
        let token = meter.begin(ItemID.root, path: "", direction: .download, total: 0)
        defer { meter.end(token) }
        var bytes: [UInt8] = []
        var used = 0
        do {
            // As much as the beginning says that there is.
            var length = PackageIndex.headerSize
            while bytes.count < length {
                var end = used
                var count = Int64(bytes.count)
                while end < entries.count, count < Int64(length) {
                    count = entries[end].range.upperBound
                    end += 1
                }
                guard end > used else { throw FillError.corrupted("the package's index ends before its end") }
                let part = MemoryContent(start: Int64(bytes.count), count: Int(count) - bytes.count)
                try await fetch(Array(entries[used..<end]), into: part, token: token, written: {})
                bytes += part.bytes
                used = end
                length = try PackageIndex.length(header: bytes)
            }
            return try PackageIndex(encoded: Array(bytes[..<length]), contentSize: manifest.size)
        } catch let error as FillError {
            throw error
        } catch {
            throw .corrupted("\(error)")
        }
    }

    // MARK: Fetching

    /// Fetches `entries` and writes each at its place. What was written before a failure stays.
    /// - Parameter written: called after each chunk, or some of them.
    func fetch(
        _ entries: [ChunkIndex.Entry],
        into destination: some ContentDestination,
        token: UInt64,
        written: @escaping @Sendable () -> Void
    ) async throws(FillError) {
        var rest = entries[...]
        while !rest.isEmpty {
            var bytes: Int64 = 0
            let request = rest.prefix { entry in
                bytes += entry.range.upperBound - entry.range.lowerBound
                return bytes <= Self.requestBytes || entry == rest.first
            }
            rest = rest.dropFirst(request.count)
            try await fetchWithRetries(Array(request), into: destination, token: token, written: written)
        }
    }

    private func fetchWithRetries(
        _ entries: [ChunkIndex.Entry],
        into destination: some ContentDestination,
        token: UInt64,
        written: @escaping @Sendable () -> Void
    ) async throws(FillError) {
        let missing = Mutex(entries)
        var tries = Tries()
        var examine = false
        // What the cloud has said of the chunks that it lacks.
        var absence: FillError?
        while true {
            let wanted = missing.withLock { $0 }
            do {
                try await fetchOnce(wanted, into: destination, token: token, examine: examine) { chunks in
                    missing.withLock { $0.removeAll { chunks.contains($0.chunk) } }
                    written()
                }
                break
            } catch {
                // A server that restarts in the middle of a long fetch is as good as at its beginning.
                if missing.withLock({ $0.count }) < wanted.count { tries = Tries() }
                if absence == nil, let lost = await lost(of: missing.withLock({ $0 }), after: error) {
                    absence = error
                    missing.withLock { $0.removeAll { lost.contains($0.chunk) } }
                    continue
                }
                try await tries.pause(after: error)
                if case .corrupted = error { examine = true }
            }
        }
        if let absence { throw absence }
    }

    /// One chunk that the cloud lacks denies all that are asked for with it: which it is, so that the others come.
    /// - Returns: `nil` if it is not that, or asking for the others would be of no use.
    private func lost(of entries: [ChunkIndex.Entry], after error: FillError) async -> Set<ChunkID>? {
        guard case .cloud(.notFound) = error else { return nil }
        let chunks = entries.map(\.chunk)
        let wanted = Set(chunks)
        guard wanted.count > 1, let answer = try? await cloud.missing(container, chunks: chunks) else { return nil }
        let lost = Set(answer)
        return lost.isEmpty || lost == wanted ? nil : lost
    }

    /// Whether the device of that name was removed from the account. Throws while the server is not reached.
    func isGone(author: String) async throws(FillError) -> Bool {
        guard !author.isEmpty else { return false }
        var tries = Tries()
        while true {
            do throws(CloudError) {
                let devices = try await cloud.devices().filter { $0.name == author }
                return !devices.isEmpty && devices.allSatisfy(\.isRevoked)
            } catch { try await tries.pause(after: .cloud(error)) }
        }
    }

    /// How often something was tried, and since when, without anything having come.
    private struct Tries {
        private var count = 1
        private let start = ContinuousClock.now

        /// Returns when it may be tried again; throws the error if that is of no use.
        mutating func pause(after error: FillError) async throws(FillError) {
            switch error {
            case .cloud(.offline)
            where count < Downloader.attempts && ContinuousClock.now - start < Downloader.timeForAttempts,
                .corrupted where count < 2:
                count += 1
                do { try await Task.sleep(for: .milliseconds(150) * (1 << count)) } catch { throw .cloud(.cancelled) }
            case .cloud, .system, .corrupted, .gone, .withdrawn, .superseded, .unsent, .authorGone, .wouldWait:
                throw error
            }
        }
    }

    private func fetchOnce(
        _ entries: [ChunkIndex.Entry],
        into destination: some ContentDestination,
        token: UInt64,
        examine: Bool,
        written: @escaping @Sendable ([ChunkID]) -> Void
    ) async throws(FillError) {
        var places: [ChunkID: [Range<Int64>]] = [:]
        var order = [ChunkID]()
        for entry in entries {
            if places[entry.chunk] == nil { order.append(entry.chunk) }
            places[entry.chunk, default: []].append(entry.range)
        }
        let wanted = places
        let received = Mutex(0)
        // While some chunks are verified and written, the next ones arrive.
        let lane = FrameLane { [self] frames in
            verified(frames, for: wanted)
        } store: { [self] chunks throws(FillError) in
            var done = [ChunkID]()
            // Also of those before a failure.
            defer { written(done) }
            for chunk in chunks {
                try write(chunk, into: destination)
                done.append(chunk.id)
                received.withLock { $0 += 1 }
                meter.countReceived(Int64(chunk.frameBytes))
                meter.advance(token, by: Int64(chunk.plain.count))
            }
        }
        let gate = gate
        var problem: CloudError?
        do {
            try gate.pass()
            try await cloud.fetch(
                container,
                chunks: order,
                examine: examine,
                whenReady: { lane.whenReady($0) },
                receive: { frame in
                    try gate.pass()
                    try lane.add(frame)
                }
            )
        } catch { problem = error }
        if let failure = await lane.end() { throw failure }
        if let problem { throw .cloud(problem) }
        guard received.withLock({ $0 }) == order.count else {
            throw .cloud(.malformed("chunks are missing from the answer"))
        }
    }

    /// A chunk that is what its name says, and where it belongs.
    private struct VerifiedChunk: Sendable {
        var id: ChunkID
        var plain: ArraySlice<UInt8>
        var places: [Range<Int64>]
        /// As it came.
        var frameBytes: Int
    }

    /// Computes.
    private func verified(
        _ frames: [ChunkFrame],
        for places: [ChunkID: [Range<Int64>]]
    ) -> [Result<VerifiedChunk, FillError>] {
        zip(frames, ChunkFrame.decoded(frames, key: key)).map { frame, plain in
            plain.mapError { .corrupted("\($0)") }.flatMap { plain in
                let places = places[frame.chunk] ?? []
                guard places.allSatisfy({ $0.upperBound - $0.lowerBound == Int64(plain.count) }) else {
                    return .failure(.corrupted("chunk \(frame.chunk) has another length than its manifest says"))
                }
                return .success(
                    VerifiedChunk(id: frame.chunk, plain: plain, places: places, frameBytes: frame.data.count)
                )
            }
        }
    }

    /// Blocks on the disk.
    private func write(_ chunk: VerifiedChunk, into destination: some ContentDestination) throws(FillError) {
        for range in chunk.places {
            let failure = chunk.plain.withUnsafeBytes { bytes -> Errno? in
                do throws(Errno) { try destination.write(bytes, at: range.lowerBound) } catch { return error }
                return nil
            }
            if let failure { throw .system(failure) }
        }
    }

    /// Database and disk, off the cooperative pool.
    private func disk<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws(FillError) -> Value
    {
        do {
            return try await BlockingPool.shared.run(body)
        } catch {
            throw .corrupted("the device's database: \(error)")
        }
    }
}

/// A part of a content, in memory.
private final class MemoryContent: ContentDestination {
    private let start: Int64
    /// Guards memory only; a leaf in the order of locks.
    private let content: Mutex<[UInt8]>

    init(start: Int64, count: Int) {
        self.start = start
        content = Mutex([UInt8](repeating: 0, count: count))
    }

    var bytes: [UInt8] { content.withLock { $0 } }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) {
        let first = Int(offset - start)
        let isInside = content.withLock { content in
            guard first >= 0, first + bytes.count <= content.count else { return false }
            content.replaceSubrange(first..<first + bytes.count, with: bytes)
            return true
        }
        if !isInside { throw .invalidArgument }
    }
}

extension Manifest {
    /// Whether it is that of a content, of so many bytes.
    func isRight(_ content: ContentID, _ size: Int64, _ key: ContainerKey) -> Bool {
        self.size == size && contentID(of: self, key: key) == content
    }
}
