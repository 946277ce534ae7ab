import Chunking
import CloudClient
import Driver
import EngineCore
import Glibc
import Logging
import Replica
import SystemPackage
package import UbiquityModel

/// A file that is open for reading, closed with its last reference.
package final class OwnedFile: Sendable {
    private let owned: OwnedDescriptor
    package var descriptor: Int32 { owned.raw }
    init(_ owned: consuming OwnedDescriptor) { self.owned = owned }
}

/// Versions: listing them, reading them, bringing them back, resolving conflicts; and what was deleted.
extension ContainerEngine {
    package func conflicts() throws(EngineError) -> [(path: ItemPath, versions: [ItemVersion])] {
        do {
            return try replica.database.conflicts().map { (remotePath(of: $0.id), $0.conflicts) }.sorted { $0.0 < $1.0 }
        } catch {
            throw .failed("\(error)")
        }
    }

    package func versions(of path: ItemPath) async throws(EngineError) -> [ItemVersion] {
        let item = try resolve(path)
        guard item.state.kind == .file || item.state.kind == .package else {
            throw .refused("\(path): only files and packages have versions")
        }
        guard let row = item.row else { return [] }
        try requireOnline()
        do { return try await cloud.versions(container.id, item: row.id) } catch { throw translate(error) }
    }

    /// The whole content of a version; of a package it is an archive.
    package func content(of path: ItemPath, revision: RevisionID) async throws(EngineError) -> OwnedFile {
        let item = try resolve(path)
        guard let version = try await versions(of: path).first(where: { $0.revision == revision }) else {
            throw .refused("\(path): no version \(revision)")
        }
        do throws(FillError) {
            guard item.state.kind == .package else { return OwnedFile(try await fetchVersion(version)) }
            return OwnedFile(try await archive(of: version, mode: item.remote?.attributes.mode ?? 0o755))
        } catch {
            throw failed(error, path)
        }
    }

    func failed(_ error: FillError, _ path: ItemPath) -> EngineError {
        switch error {
        case .cloud(let cloudError): translate(cloudError)
        case .system(.noSpace): .noSpace
        case .system, .corrupted, .gone, .withdrawn, .superseded, .unsent, .authorGone, .wouldWait:
            .failed("\(path): \(error)")
        }
    }

    /// Fetches a version into an unnamed file beside the tree.
    private func fetchVersion(_ version: ItemVersion) async throws(FillError) -> OwnedDescriptor {
        let staged = try await unnamedFile()
        try await fetch(version, into: staged)
        return try reopened(staged)
    }

    /// All of it.
    func fetch(_ version: ItemVersion, into staged: StagedContent) async throws(FillError) {
        try requireCloud()
        let manifest = try await downloader.manifest(of: version.content, size: version.size)
        try await fetch(ChunkIndex(manifest).entries, of: version, size: version.size, into: staged)
    }

    /// Its open descriptor is all that there is of it: nothing is left behind, whatever happens.
    func unnamedFile() async throws(FillError) -> StagedContent {
        let replica = replica
        return try await onDisk {
            let staged = StagedContent(try replica.staging.makeFile())
            try replica.staging.remove(staged.name)
            return staged
        }
    }

    func reopened(_ staged: StagedContent) throws(FillError) -> OwnedDescriptor {
        do throws(Errno) { return try OwnedDescriptor(reopening: staged.descriptor, flags: O_RDONLY) } catch {
            throw .system(error)
        }
    }

    /// - Parameter size: of all that is fetched, in bytes.
    func fetch(
        _ entries: [ChunkIndex.Entry],
        of version: ItemVersion,
        size: Int64,
        into destination: some ContentDestination
    ) async throws(FillError) {
        try requireCloud()
        let (replica, key) = (replica, key)
        try await onDisk {
            // They become holes.
            let hole = [UInt8](repeating: 0, count: Manifest.maximumChunkSize).withUnsafeBytes {
                chunkID(of: $0, key: key)
            }
            let needed = Sizes.sum(entries.lazy.filter { $0.chunk != hole }.map { Int64($0.range.count) })
            let room = try replica.tree.freeBytes() - ContentFiller.roomLeft
            guard needed <= 0 || needed <= room else { throw Errno.noSpace }
        }
        let token = meter.begin(.root, path: version.name.description, direction: .download, total: size)
        defer { meter.end(token) }
        try await downloader.fetch(entries, into: destination, token: token, written: {})
    }

    package func restore(_ path: ItemPath, revision: RevisionID) async throws(EngineError) {
        let row = try syncedRow(path)
        let base = remoteRevision(of: row.id)
        let now = wallClock
        try await commit(path, row.id, .restore(version: revision, as: .made(at: now), base: base, edited: now))
    }

    package func resolve(_ path: ItemPath, keep: Keep) async throws(EngineError) {
        let item = try resolve(path)
        // Of what lies in a package it is the package.
        let path = item.path
        guard let row = item.row else { throw unsent(path) }
        guard let remote = try? replica.database.remote(row.id) else { throw .notFound(path) }
        let open = remote.conflicts.map(\.revision)
        let base = remote.content.revision
        switch keep {
        case .current:
            guard !open.isEmpty else { return }
            try await commit(path, row.id, .resolve(versions: open, winner: nil, base: base))
        case .version(let revision):
            try await commit(path, row.id, .resolve(versions: open, winner: revision, base: base))
        case .both:
            for version in remote.conflicts { try await keepBeside(item, version) }
            guard !open.isEmpty else { return }
            try await commit(path, row.id, .resolve(versions: open, winner: nil, base: base))
        }
    }

    /// The current revision as this device knows it: what whoever decides about versions has before them.
    private func remoteRevision(of item: ItemID) -> RevisionID? {
        (try? replica.database.remote(item))?.content.revision
    }

    private func syncedRow(_ path: ItemPath) throws(EngineError) -> SyncedItem {
        guard let row = try resolve(path).row else { throw unsent(path) }
        return row
    }

    private func unsent(_ path: ItemPath) -> EngineError { .busy("\(path): not sent yet") }

    /// At once, where it is known that the server is not to be reached, or not wanted to be.
    func requireOnline() throws(EngineError) { if let obstacle { throw .offline(obstacle) } }

    func requireCloud() throws(FillError) { if let obstacle { throw .cloud(.offline(obstacle)) } }

    private func commit(_ path: ItemPath, _ item: ItemID, _ action: ItemOperation.Action) async throws(EngineError) {
        let operation = ItemOperation(id: .made(at: wallClock), item: item, action: action)
        let answer = try await commit([operation])
        switch answer.outcomes.first {
        case .committed(let remote): try takeAnswers([remote], upTo: answer.position)
        case .noSuchItem: throw .refused("\(path): no such version or item in the cloud")
        case .invalid(let why): throw .refused("\(path): \(why)")
        case .quotaExceeded: throw .refused("the account's quota is used up")
        case .missingChunks, .nameTaken, .parentMissing, .notEmpty, .cycle, .superseded, .skipped, nil:
            throw .failed("\(path): the server did not take it")
        }
    }

    func commit(_ operations: [ItemOperation]) async throws(EngineError) -> CommitAnswer {
        try requireOnline()
        do {
            return try await cloud.commit(
                container.id,
                operations: operations,
                frames: [],
                clock: wallClock,
                bases: [:],
                // Whoever resolves or restores chooses between versions, and may choose again.
                discardsFormer: false
            )
        } catch {
            throw translate(error)
        }
    }

    /// What was committed is known here at once.
    /// - Parameter position: the log's end after that, by which it shows if the server loses it again.
    func takeAnswers(_ items: [RemoteItem], upTo position: LogPosition) throws(EngineError) {
        do throws(ReplicaError) {
            let arriving = try prepareForChanges(items)
            try replica.database.apply(SyncedChanges(), remote: items, answered: position)
            handle(.remoteChanged)
            noteArrived(arriving)
        } catch { throw .failed("\(error)") }
    }

    func translate(_ error: CloudError) -> EngineError {
        switch error {
        case .offline(let why): .offline(why)
        case .stalled(let why): .stalled(why)
        case .revoked, .unauthorized, .wrongServer: .refused("\(error)")
        case .notFound(let what): .refused(what)
        case .rejected, .quotaExceeded, .tooNew, .malformed, .serverFull: .failed("\(error)")
        case .cancelled: .busy("interrupted")
        }
    }

    // MARK: `.versions`

    func versionListing(of path: ItemPath) async -> Result<VersionListing, Errno> {
        do throws(EngineError) {
            let item = try resolve(path)
            // What lies in a package has no versions of its own.
            guard item.path == path else { return .failure(.noSuchFileOrDirectory) }
            let kind: ItemKind
            switch item.state.kind {
            case .folder: return .success(VersionListing(kind: .folder, children: conflictedChildren(of: path)))
            case .package: kind = .package
            case .file: kind = .file
            case .symlink, .other: return .success(VersionListing())
            }
            guard let row = item.row else { return .success(VersionListing(kind: kind)) }
            // Without the server the losers are known all the same.
            let known = VersionListing(kind: kind, versions: item.remote?.conflicts ?? [])
            guard obstacle == nil else { return .success(known) }
            do throws(CloudError) {
                let versions = try await cloud.versions(container.id, item: row.id)
                return .success(VersionListing(kind: kind, versions: versions.filter { $0.kind != .current }))
            } catch {
                switch error {
                case .offline, .stalled:
                    return .success(known)
                case .revoked, .unauthorized, .notFound, .rejected, .serverFull, .quotaExceeded, .tooNew, .wrongServer,
                    .malformed, .cancelled:
                    return .failure(FillError.cloud(error).errno)
                }
            }
        } catch {
            return .failure(error.errno)
        }
    }

    /// What of a folder leads to an unresolved version.
    private func conflictedChildren(of path: ItemPath) -> [Name] {
        let conflicted = (try? replica.database.conflicts()) ?? []
        var names: Set<Name> = []
        for item in conflicted {
            let full = remotePath(of: item.id)
            if full != path, full.isInside(path) { names.insert(full.names[path.names.count]) }
        }
        return names.sorted()
    }

    func openVersion(path: ItemPath, revision: RevisionID) async -> Result<Int32, Errno> {
        do throws(EngineError) {
            let item = try resolve(path)
            var version = item.remote?.conflicts.first { $0.revision == revision }
            if version == nil { version = try await versions(of: path).first { $0.revision == revision } }
            guard let version else { return .failure(.noSuchFileOrDirectory) }
            do throws(FillError) {
                let content = try await fetchVersion(version)
                return .success(content.release())
            } catch {
                return .failure(error.errno)
            }
        } catch {
            return .failure(error.errno)
        }
    }

    /// `rm` of an entry, or `mv` of it over its item. Called while the kernel holds the item's folder: nothing here waits for the mount.
    /// - Returns: what the program sees if it is not done.
    func changeVersion(_ change: VersionChange, path: ItemPath, version: ItemVersion) async -> Errno? {
        do throws(EngineError) {
            let row = try syncedRow(path)
            let base = remoteRevision(of: row.id)
            let revision = version.revision
            switch (change, version.kind) {
            case (.remove, .conflict):
                try await commit(path, row.id, .resolve(versions: [revision], winner: nil, base: base))
            case (.remove, .saved), (.remove, .current):
                try await commit(path, row.id, .discard(versions: [revision]))
            case (.bringBack, .conflict):
                try await commit(path, row.id, .resolve(versions: [revision], winner: revision, base: base))
            case (.bringBack, .saved), (.bringBack, .current):
                let now = wallClock
                try await commit(path, row.id, .restore(version: revision, as: .made(at: now), base: base, edited: now))
                // It is in the file now. Where this does not come through there is one saved version more.
                try? await commit(path, row.id, .discard(versions: [revision]))
            }
            return nil
        } catch {
            logger.info("a version is not changed", metadata: ["path": "\(path)", "why": "\(error)"])
            return error.errno
        }
    }
}
