import Chunking
import CloudClient
import Dispatch
import EngineCore
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// Why a file could not be read or its content not sent.
enum UploadError: Error {
    /// Written meanwhile, replaced, gone: look again.
    case changed
    case unreadable(String)
    /// What some files of a package stand for is not here, and nobody knows it.
    case lacking
    case cloud(CloudError)
}

/// Reads files, cuts them into chunks and brings those that it lacks to the cloud.
struct Uploader: Sendable {
    /// Files up to this size, in bytes, are kept in memory and travel inside the commit.
    static let smallFile: Int64 = 256 * 1024
    /// Chunks of one upload request, in plain bytes.
    static let batchBytes = 4 * 1024 * 1024
    /// Batches in memory while the network is slower than the disk: on their way, and read ahead.
    static let batchesAhead = 4
    /// While one is verified and stored in the cloud, the next is compressed here.
    private static let batchesOnTheirWay = 2

    let container: ContainerID
    let key: ContainerKey
    let cloud: any Cloud
    let replica: Replica
    let meter: TransferMeter
    let gate: TransferGate
    /// What the cloud turned out to lack.
    let lost = LostChunks()

    /// Reads small files whole, one after the other.
    /// - Returns: one for each, in their order.
    func readSmall(_ files: [WantedFile]) async -> [Result<ReadContent, ReadFailure>] {
        let (replica, key) = (replica, key)
        let results = try? await BlockingPool.shared.run {
            // Most lie beside the one before.
            var last: (key: InodeKey, folder: OwnedFile)?
            return files.map { file in
                if last?.key != file.place.folder { last = nil }
                return Self.readSmall(file, replica, key) { () throws(Errno) in
                    if let last { return last.folder }
                    let folder = OwnedFile(try replica.tree.openFolder(key: file.place.folder))
                    last = (file.place.folder, folder)
                    return folder
                }
            }
        }
        // The closure above does not throw, and the pool throws nothing of its own.
        return results ?? []
    }

    private static func readSmall(
        _ file: WantedFile,
        _ replica: Replica,
        _ key: ContainerKey,
        openFolder: () throws(Errno) -> OwnedFile
    ) -> Result<ReadContent, ReadFailure> {
        var chunks: [ChunkID: [UInt8]] = [:]
        let reading = read(
            file.place,
            expecting: file.state,
            hasWriter: file.hasWriter,
            replica: replica,
            key: key,
            // It may have become any size since it was looked at: it is sent as a large one then.
            upTo: smallFile,
            openFolder: openFolder
        ) { id, bytes in chunks[id] = Array(bytes) }
        switch reading {
        case .success(let read):
            return .success(
                ReadContent(manifest: read.manifest, content: read.content, state: read.state, chunks: chunks)
            )
        case .failure(.unreadable(let why)): return .failure(.unreadable(why))
        // Nothing goes to the cloud here.
        case .failure(.changed), .failure(.cloud), .failure(.lacking): return .failure(.changed)
        }
    }

    /// Reads a large file in a stream and uploads what the cloud lacks while it is being read. What the item's former content had is in
    /// the cloud, and not even asked for; should it have been lost there, the commit says so.
    func sendLarge(
        _ place: LocalPlace,
        of item: ItemID,
        expecting state: LocalState,
        hasWriter: Bool,
        dataless: DatalessParts = DatalessParts(),
        token: UInt64
    ) async throws(UploadError) -> ReadContent {
        let batches = AsyncStream<[(ChunkID, [UInt8])]>.makeStream()
        let slots = DispatchSemaphore(value: Self.batchesAhead)
        let isStopped = Mutex(false)
        let result = Mutex<Result<ContentReader.Reading, UploadError>?>(nil)
        let (replica, key) = (replica, key)
        // A thread of its own: it blocks on the disk and, through `slots`, on the network.
        BlockingThread.start("ubi-upload") {
            var batch: [(ChunkID, [UInt8])] = []
            var bytesInBatch = 0
            let former = formerManifest(of: item)
            let known = lost.without(Set((former?.entries ?? []).map(\.chunk)))
            func handOver() throws {
                slots.wait()
                if case .terminated = batches.continuation.yield(batch) {
                    // Called off: nobody takes any more.
                    slots.signal()
                    throw UploadError.changed
                }
                batch = []
                bytesInBatch = 0
            }
            func take(_ id: ChunkID, _ bytes: UnsafeRawBufferPointer) throws {
                if isStopped.withLock({ $0 }) { throw UploadError.changed }
                if known.contains(id) {
                    meter.advance(token, by: Int64(bytes.count))
                    return
                }
                batch.append((id, Array(bytes)))
                bytesInBatch += bytes.count
                if bytesInBatch >= Self.batchBytes { try handOver() }
            }
            let openFolder = { () throws(Errno) in OwnedFile(try replica.tree.openFolder(key: place.folder)) }
            var outcome =
                if state.kind == .package {
                    Self.readPackage(
                        WantedFile(place: place, state: state, hasWriter: hasWriter),
                        replica,
                        key,
                        dataless,
                        emit: take
                    )
                } else {
                    Self.read(
                        place,
                        expecting: state,
                        hasWriter: hasWriter,
                        replica: replica,
                        key: key,
                        openFolder: openFolder,
                        former: former,
                        // This thread, which waits for it, is none of the pool's.
                        beside: { BlockingPool.shared.submit($0) },
                        emit: take
                    )
                }
            if case .success = outcome, !batch.isEmpty {
                do { try handOver() } catch { outcome = .failure(.changed) }
            }
            result.withLock { $0 = outcome }
            batches.continuation.finish()
        }
        let failure = Mutex<CloudError?>(nil)
        await withTaskGroup(of: Void.self) { group in
            var running = 0
            for await batch in batches.stream {
                if running == Self.batchesOnTheirWay {
                    await group.next()
                    running -= 1
                }
                running += 1
                group.addTask { @Sendable in
                    defer { slots.signal() }
                    guard !isStopped.withLock({ $0 }) else { return }
                    do throws(CloudError) { try await send(batch, token: token) } catch {
                        failure.withLock { $0 = $0 ?? error }
                        isStopped.withLock { $0 = true }
                    }
                }
            }
        }
        isStopped.withLock { $0 = true }
        if let failure = failure.withLock({ $0 }) { throw .cloud(failure) }
        guard let reading = try result.withLock({ $0 })?.get() else { throw .changed }
        return ReadContent(
            manifest: reading.manifest,
            content: reading.content,
            state: reading.state,
            chunks: [:],
            absent: dataless.all
        )
    }

    /// Blocks on the database. Nothing known is always a right answer: then all of them are asked for.
    private func formerManifest(of item: ItemID) -> Manifest? {
        guard case .file(let file)? = (try? replica.database.synced(item))?.content, let content = file.content else {
            return nil
        }
        return try? replica.database.manifest(content)
    }

    /// Uploads those of the chunks that the cloud lacks.
    func send(_ chunks: [(ChunkID, [UInt8])], token: UInt64?) async throws(CloudError) {
        try gate.pass()
        let lacking = Set(try await cloud.missing(container, chunks: chunks.map(\.0)))
        let wanted = chunks.filter { lacking.contains($0.0) }
        if !wanted.isEmpty {
            let frames = await encode(wanted)
            try await cloud.upload(container, frames: frames)
            meter.countSent(frames.reduce(0) { $0 + Int64($1.data.count) })
        }
        if let token { meter.advance(token, by: chunks.reduce(0) { $0 + Int64($1.1.count) }) }
    }

    func encode(_ chunks: [(ChunkID, [UInt8])]) async -> [ChunkFrame] {
        let frames = try? await BlockingPool.shared.run {
            chunks.map { id, bytes in ChunkFrame.encode(bytes[...], as: id) }
        }
        // The closure above does not throw, and the pool throws nothing of its own.
        return frames ?? []
    }

    private static func read(
        _ place: LocalPlace,
        expecting state: LocalState,
        hasWriter: Bool,
        replica: Replica,
        key: ContainerKey,
        upTo limit: Int64 = .max,
        openFolder: () throws(Errno) -> OwnedFile,
        former: Manifest? = nil,
        beside: ((@escaping @Sendable () -> Void) -> Void)? = nil,
        emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) -> Result<ContentReader.Reading, UploadError> {
        failing { () throws in
            let folder = try openFolder()
            // Its descriptor is read before it is used.
            defer { withExtendedLifetime(folder) {} }
            let file = try replica.tree.openRegular(in: folder.descriptor, place.name)
            return try ContentReader.read(
                file.raw,
                expecting: state.key,
                upTo: limit,
                key: key,
                synchronizing: hasWriter,
                former: former,
                beside: beside,
                emit: emit
            )
        }
    }

    /// Blocks on the disk.
    private static func readPackage(
        _ package: WantedFile,
        _ replica: Replica,
        _ key: ContainerKey,
        _ dataless: DatalessParts,
        emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) -> Result<ContentReader.Reading, UploadError> {
        failing { () throws in
            let parent = try replica.tree.openFolder(key: package.place.folder)
            let folder = try replica.tree.openAny(in: parent.raw, package.place.name)
            guard try InodeKey(descriptor: folder.raw) == package.state.key else { throw UploadError.changed }
            let reading = try PackageReader.read(
                folder.raw,
                expecting: package.state,
                key: key,
                synchronizing: package.hasWriter,
                dataless: dataless.chunks,
                emit: emit
            )
            // The feed is about to tell of it; and who replaces it asks what it was made of, when the cloud may have that no more.
            if let index = reading.index {
                try? replica.database.write(packageIndexes: [reading.content: index])
            }
            return reading
        }
    }

    /// A small package whole.
    func readSmallPackage(_ package: WantedFile, _ dataless: DatalessParts) async -> Result<ReadContent, ReadFailure> {
        let (replica, key) = (replica, key)
        let result = try? await BlockingPool.shared.run { () -> Result<ReadContent, ReadFailure> in
            var chunks: [ChunkID: [UInt8]] = [:]
            switch Self.readPackage(package, replica, key, dataless, emit: { id, bytes in chunks[id] = Array(bytes) }) {
            case .success(let read):
                return .success(
                    ReadContent(
                        manifest: read.manifest,
                        content: read.content,
                        state: read.state,
                        chunks: chunks,
                        absent: dataless.all.subtracting(chunks.keys)
                    )
                )
            case .failure(.unreadable(let why)): return .failure(.unreadable(why))
            case .failure(.changed), .failure(.cloud): return .failure(.changed)
            case .failure(.lacking): return .failure(.lacking)
            }
        }
        return result ?? .failure(.changed)
    }

    private static func failing(
        _ body: () throws -> ContentReader.Reading
    ) -> Result<ContentReader.Reading, UploadError> {
        do { return .success(try body()) } catch let error as ContentReadError {
            switch error {
            case .changed, .notWhole: return .failure(.changed)
            case .system(let errno): return .failure(.unreadable("\(errno)"))
            case .stopped(let reason): return .failure(reason as? UploadError ?? .changed)
            }
        } catch .noSuchFileOrDirectory as Errno, .stale as Errno, .notDirectory as Errno {
            return .failure(.changed)
        } catch let error as UploadError {
            return .failure(error)
        } catch {
            return .failure(.unreadable("\(error)"))
        }
    }
}
