import Chunking
import CloudClient
import Driver
import EngineCore
import Glibc
import Logging
import Replica
import SystemPackage
import UbiquityModel

/// What was brought together for an item, and is not published yet.
struct DownloadedContent: Sendable {
    var revision: RevisionID
    /// What it was given besides its content.
    var attributes: ItemAttributes
    /// What was here while that was done. A package shares files with it.
    var evidence: LocalEvidence
    /// In the staging folder.
    var name: String

    /// A package is of no use when something was written in the one that is here: that is in the files of both.
    func isGood(for wanted: WantedContent) -> Bool {
        revision == wanted.file.revision && (!wanted.file.isPackage || evidence == wanted.evidence)
    }
}

/// New content for a file that is whole here: brought together beside the tree, from the old content where they are equal.
extension ContainerEngine {
    /// Contents up to this size are downloaded inside the pass, in bytes; larger ones beside it.
    private static let insidePass: Int64 = 1024 * 1024

    func wholeContent(_ wanted: WantedContent) async -> WholeContent {
        let id = wanted.remote.id
        if mount?.hasWriter(wanted.evidence.key) ?? false {
            // It could not be published: only what is closed is replaced.
            synchronizer.wait(wanted.works, forWriterOf: wanted.evidence.key)
            return .not(.later(.seconds(5)))
        }
        if let path = path(of: wanted.place), !claims.engineMay(write: path) {
            // Nor could it be published: what is ready stays so, and what is not is not brought for nothing, again and again.
            synchronizer.device.wake(wanted.works, whenFree: path)
            return .not(.later(Core.claimPause))
        }
        if let ready = downloaded[id] {
            downloaded[id] = nil
            if ready.isGood(for: wanted), await isAsPrepared(ready, wanted.file), await hasAttributes(ready, wanted) {
                return .staged(ready.name)
            }
            synchronizer.device.discard(ready.name)
        }
        guard wanted.file.size > Self.insidePass else {
            do throws(FillError) { return .staged(try await bringTogether(wanted)) } catch {
                return .not(verdict(error, wanted))
            }
        }
        guard !synchronizer.isStopping else { return .not(.later(TransferSlots.longestWait)) }
        guard tracker.downloads.begin(id, wanted.works) else { return .not(.later(TransferSlots.longestWait)) }
        tracker.transferring.insert(id)
        transferTasks[id] = Task {
            var verdict = Verdict.again
            do throws(FillError) {
                let name = try await self.bringTogether(wanted)
                self.downloaded[id] = DownloadedContent(
                    revision: wanted.file.revision,
                    attributes: wanted.remote.attributes,
                    evidence: wanted.evidence,
                    name: name
                )
            } catch {
                verdict = self.verdict(error, wanted)
                self.logger.info("a download ended early", metadata: ["why": "\(error)"])
            }
            self.transferTasks[id] = nil
            self.synchronizer.transferEnded(id, wanted.works, verdict)
        }
        return .not(.transferring)
    }

    /// Others may have changed them while the content was coming: what is published has those that are then agreed on.
    /// - Returns: false if it has to be prepared anew.
    private func hasAttributes(_ ready: DownloadedContent, _ wanted: WantedContent) async -> Bool {
        let attributes = wanted.remote.attributes
        guard ready.attributes != attributes else { return true }
        guard !wanted.file.isPackage else { return false }
        let staging = replica.staging
        let isDone = try? await BlockingPool.shared.run {
            let staged = StagedContent(name: ready.name, try staging.open(ready.name, flags: O_RDONLY))
            try staged.change(attributes)
            return true
        }
        return isDone ?? false
    }

    /// Whether nothing was done to the files of a package meanwhile. Of those that it shares with the one that is here the content may have
    /// been given up.
    private func isAsPrepared(_ ready: DownloadedContent, _ file: FileContent) async -> Bool {
        guard file.isPackage else { return true }
        guard let prepared = synchronizer.device.stagedPackages[ready.name] else { return false }
        let staging = replica.staging
        let seen = try? await BlockingPool.shared.run {
            let folder = try staging.open(ready.name, flags: O_RDONLY | O_DIRECTORY)
            return try PackageTree(folder: folder.raw).state
        }
        guard let seen else { return false }
        return LocalEvidence(seen) == LocalEvidence(prepared)
            && seen.facts?.datalessElements == prepared.facts?.datalessElements
    }

    private func verdict(_ error: FillError, _ wanted: WantedContent) -> Verdict {
        let id = wanted.remote.id
        switch error {
        // It was changed here meanwhile.
        case .system(.stale) where wanted.file.isPackage: return .again
        case .system(let errno): noteProblem(id, at: wanted.place, Core.reason(errno))
        // Nothing that is whole here is replaced by what is only announced.
        case .gone, .withdrawn, .superseded, .unsent, .authorGone, .wouldWait: return .later(.seconds(1))
        case .corrupted(let why): noteProblem(id, at: wanted.place, "the content fails its check: \(why)")
        case .cloud(let error):
            noteCloudProblem(id, path(of: wanted.place)?.description ?? "", error)
            return Self.verdict(error)
        }
        return .failed
    }

    private func bringTogether(_ wanted: WantedContent) async throws(FillError) -> String {
        if wanted.file.isPackage { return try await wholePackage(wanted) }
        let (file, place, row) = (wanted.file, wanted.place, wanted.row)
        guard let content = file.content else { throw .gone }
        let former: ContentID? = if case .file(let agreed)? = row?.content { agreed.content } else { nil }
        let manifest = try await downloader.manifest(of: content, size: file.size, following: former)
        let (replica, key) = (replica, key)
        let staged: StagedContent
        let lacking: [ChunkIndex.Entry]
        do {
            let chunks = try await BlockingPool.shared.run {
                let chunks = try LocalChunks(
                    in: StagedContent(try replica.staging.partFile(file.revision)),
                    at: place,
                    row: row,
                    replica: replica,
                    key: key
                )
                // What is no larger than what it replaces gives back at least what it takes.
                let isLarger = if case .file(let agreed)? = row?.content { agreed.size < file.size } else { true }
                let room = try replica.tree.freeBytes() - (isLarger ? ContentFiller.roomLeft : 0)
                let needed = try chunks.roomNeeded(for: manifest)
                guard needed <= 0 || needed <= room else { throw Errno.noSpace }
                return chunks
            }
            staged = chunks.staged
            lacking = try await chunks.reuse(for: manifest)
        } catch let error as Errno {
            await giveRoomBack(after: error, file.revision)
            throw .system(error)
        } catch is CancellationError {
            throw .cloud(.cancelled)
        } catch {
            throw .corrupted("\(error)")
        }
        let shown = path(of: place)?.description ?? place.name.description
        let token = meter.begin(wanted.remote.id, path: shown, direction: .download, total: file.size)
        defer { meter.end(token) }
        do throws(FillError) {
            try await downloader.fetch(lacking, into: staged, token: token, written: {})
        } catch {
            if case .system(let errno) = error { await giveRoomBack(after: errno, file.revision) }
            throw error
        }
        do {
            try await BlockingPool.shared.run {
                try staged.complete(size: file.size, attributes: wanted.remote.attributes)
            }
        } catch let error as Errno {
            // What the disk could not write it says once, and the pages look as if it had: the next attempt must not find them.
            let staging = replica.staging
            try? await BlockingPool.shared.run { try staging.remove(staged.name) }
            throw .system(error)
        } catch {
            throw .corrupted("\(error)")
        }
        return staged.name
    }

    /// On a full disk what has come is worth less than its room.
    private func giveRoomBack(after error: Errno, _ revision: RevisionID) async {
        guard error == .noSpace || error == .diskQuotaExceeded else { return }
        let staging = replica.staging
        try? await BlockingPool.shared.run { try staging.removePart(revision) }
    }

    /// A partly downloaded content is of use as long as an item of the cloud has that revision and this device does not: it may lie here
    /// since another one came before it was whole.
    func removeUnwantedParts() async {
        let replica = replica
        do {
            try await BlockingPool.shared.run {
                // Each takes a look at all items, and there are a few at most.
                for part in try replica.staging.parts() {
                    let remote = try replica.database.remote(revision: part)
                    if let remote, try replica.database.synced(remote.id)?.content.revision != part { continue }
                    try replica.staging.removePart(part)
                }
            }
        } catch {
            logger.warning("partly downloaded contents are not looked at", metadata: ["why": "\(error)"])
        }
    }
}

/// Finds chunks of a new content that are on this disk already: in an interrupted download, and in the file's old content.
final class LocalChunks: Sendable {
    /// Chunks that a thread looks for in one go.
    private static let share = 256
    /// Shares that are looked through at the same time: whoever else wants the pool's threads waits for no more than these.
    private static let sharesAtOnce = 2
    /// Chunks that are read and verified together: enough for two at a time, and little enough for the processor's cache.
    private static let atOnce = 4

    let staged: StagedContent
    /// Up to here an interrupted download may have left something. What lies behind is only what is being put there: a hole, or right.
    private let left: Int64
    private let key: ContainerKey
    private let old: [ChunkID: Range<Int64>]
    /// The former content; `nil` if there is none. Good as long as its owner, which is kept for that.
    private let former: Int32?
    private let file: OwnedDescriptor?

    /// Blocks on the disk.
    init(
        in staged: StagedContent,
        at place: LocalPlace,
        row: SyncedItem?,
        replica: Replica,
        key: ContainerKey
    ) throws {
        var old: [ChunkID: Range<Int64>] = [:]
        var file: OwnedDescriptor?
        if let local = row?.local, !local.isDataless, case .file(let content)? = row?.content, let id = content.content,
            let base = try replica.database.manifest(id)
        {
            for entry in ChunkIndex(base).entries { old[entry.chunk] = entry.range }
            let folder = try replica.tree.openFolder(key: place.folder)
            // Gone or replaced: then nothing of it is used.
            file = try? replica.tree.openFile(in: folder.raw, place.name, expecting: local.key)
        }
        self.staged = staged
        left = try staged.size()
        self.key = key
        self.old = old
        former = file?.raw
        self.file = file
    }

    /// Bytes that the disk has to have for what is not there yet: what will not fit does not take the last room from what programs write.
    /// Blocks on the disk.
    func roomNeeded(for manifest: Manifest) throws(Errno) -> Int64 {
        // They become holes.
        let zeros = [UInt8](repeating: 0, count: Manifest.maximumChunkSize).withUnsafeBytes {
            chunkID(of: $0, key: key)
        }
        let all = manifest.entries.reduce(Int64(0)) { $0 + ($1.chunk == zeros ? 0 : Int64($1.length)) }
        return all - (try staged.allocated())
    }

    /// Copies what is here and right, on some of the pool's threads; returns what is not. Ends early when it is cancelled.
    func reuse(for manifest: Manifest) async throws -> [ChunkIndex.Entry] {
        let entries = ChunkIndex(manifest).entries
        return try await withThrowingTaskGroup(of: (Int, [ChunkIndex.Entry]).self) { group in
            var starts = stride(from: 0, to: entries.count, by: Self.share).makeIterator()
            func addNext() {
                guard let start = starts.next() else { return }
                let part = entries[start..<min(entries.count, start + Self.share)]
                group.addTask { (start, try await BlockingPool.shared.run { try self.reuse(part) }) }
            }
            for _ in 0..<Self.sharesAtOnce { addNext() }
            var lacking: [Int: [ChunkIndex.Entry]] = [:]
            while let (start, rest) = try await group.next() {
                lacking[start] = rest
                try Task.checkCancellation()
                addNext()
            }
            return lacking.sorted { $0.key < $1.key }.flatMap(\.value)
        }
    }

    private func reuse(_ entries: ArraySlice<ChunkIndex.Entry>) throws -> [ChunkIndex.Entry] {
        var lacking: [ChunkIndex.Entry] = []
        let room = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Self.atOnce * Manifest.maximumChunkSize,
            alignment: 16
        )
        defer { room.deallocate() }
        for start in stride(from: entries.startIndex, to: entries.endIndex, by: Self.atOnce) {
            let some = Array(entries[start..<min(entries.endIndex, start + Self.atOnce)])
            let inStaged = try right(some, from: staged.descriptor, into: room) {
                $0.range.lowerBound < left ? $0.range.lowerBound : nil
            }
            let others = zip(some, inStaged).filter { $0.1 == nil }.map(\.0)
            guard let former, !others.isEmpty else {
                lacking += others
                continue
            }
            let inFormer = try right(others, from: former, into: room) { entry in
                old[entry.chunk].flatMap { $0.count == entry.range.count ? $0.lowerBound : nil }
            }
            for (entry, bytes) in zip(others, inFormer) {
                if let bytes {
                    try staged.write(bytes, at: entry.range.lowerBound)
                } else {
                    lacking.append(entry)
                }
            }
        }
        return lacking
    }

    /// Reads what may be these chunks, and verifies it.
    /// - Parameters:
    ///   - room: takes the bytes.
    ///   - offset: where a chunk may be; `nil`: nowhere.
    /// - Returns: of each the bytes if they are right, until the room is used again.
    private func right(
        _ entries: [ChunkIndex.Entry],
        from descriptor: Int32,
        into room: UnsafeMutableRawBufferPointer,
        at offset: (ChunkIndex.Entry) -> Int64?
    ) throws -> [UnsafeRawBufferPointer?] {
        let found = try entries.enumerated().map { index, entry -> UnsafeRawBufferPointer? in
            guard let offset = offset(entry) else { return nil }
            let start = index * Manifest.maximumChunkSize
            let part = UnsafeMutableRawBufferPointer(rebasing: room[start..<start + entry.range.count])
            let count = try StagedContent.read(descriptor, into: part, at: offset)
            return count == part.count ? UnsafeRawBufferPointer(part) : nil
        }
        var ids = chunkIDs(of: found.compactMap { $0 }, key: key)[...]
        return zip(entries, found).map { entry, bytes in
            bytes.flatMap { ids.popFirst() == entry.chunk ? $0 : nil }
        }
    }
}
