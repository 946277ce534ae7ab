import Chunking
import CloudClient
import Driver
import EngineCore
import Glibc
import Logging
import Reconciliation
import Replica
import SystemPackage
package import UbiquityModel

/// Packages of the cloud: what they are made of has to be known before they can be seen here.
extension ContainerEngine {
    /// What the container declares, as far as this device has been told.
    package nonisolated var packages: PackageDeclaration { populator.packages.declaration }

    /// This device has changed that: it counts here at once. The feed tells it once more, together with what others have changed.
    package nonisolated func declare(_ change: PackageDeclaration) {
        populator.packages.declare { $0.applying(change) }
    }

    /// Packages that are asked for at the same time: each takes the server a round trip or two, and nothing of a page appears before them.
    private static let packagesAtOnce = 8

    /// Before items are written down: asks what those of them are made of that are packages, so that whoever looks into their folders finds
    /// them at once. One of which that cannot be found out is asked for again when it is to appear, and holds nothing else up.
    /// - Parameter manifests: that came with the items.
    func learnPackages(_ items: [RemoteItem], _ manifests: [ContentID: Manifest]) async throws(CloudError) {
        var seen: Set<ContentID> = []
        let packages = items.compactMap { item -> FileContent? in
            guard !item.isDeleted, case .file(let file) = item.content, file.isPackage else { return nil }
            if let content = file.content, !seen.insert(content).inserted { return nil }
            return file
        }
        guard !packages.isEmpty else { return }
        let unknown = await unknown(among: packages, manifests)
        let failure = await withTaskGroup(of: CloudError?.self) { tasks in
            var rest = unknown.makeIterator()
            var failure: CloudError?
            func add() {
                guard let file = rest.next() else { return }
                tasks.addTask { await self.learnPackage(file) }
            }
            for _ in 0..<Self.packagesAtOnce { add() }
            for await error in tasks {
                failure = failure ?? error
                if failure == nil { add() }
            }
            return failure
        }
        if let failure { throw failure }
    }

    /// Those of which is not known here what they are made of. What came along is written down for them: it need not be asked for.
    private func unknown(among packages: [FileContent], _ manifests: [ContentID: Manifest]) async -> [FileContent] {
        let replica = replica
        let unknown = try? await BlockingPool.shared.run {
            let unknown = try packages.filter { file in
                guard let content = file.content else { return true }
                return try !replica.database.hasPackageIndex(content)
            }
            let contents = Set(unknown.compactMap(\.content))
            try replica.database.write(manifests: manifests.filter { contents.contains($0.key) })
            return unknown
        }
        return unknown ?? packages
    }

    /// - Returns: why nothing else would come either.
    private func learnPackage(_ file: FileContent) async -> CloudError? {
        do throws(FillError) { _ = try await packageIndex(of: file) } catch {
            if case .cloud(let cloudError) = error, Self.isOfAll(cloudError) { return cloudError }
            logger.error("what a package is made of cannot be known", metadata: ["why": "\(error)"])
        }
        return nil
    }

    /// It says nothing of what was asked for: nothing else would come either.
    private static func isOfAll(_ error: CloudError) -> Bool {
        switch error {
        case .offline, .stalled, .cancelled, .revoked, .unauthorized, .wrongServer, .tooNew: true
        case .notFound, .rejected, .serverFull, .quotaExceeded, .malformed: false
        }
    }

    /// Nobody has it any more, and asking again would give nothing else.
    private static func isAbsence(_ error: FillError) -> Bool {
        switch error {
        case .gone, .cloud(.notFound): true
        case .cloud, .system, .corrupted, .withdrawn, .superseded, .unsent, .authorGone, .wouldWait: false
        }
    }

    /// Remembered, or asked for and checked.
    func packageIndex(of file: FileContent, following former: ContentID? = nil) async throws(FillError) -> PackageIndex
    {
        guard let content = file.content else { throw .gone }
        let (replica, size) = (replica, file.size)
        do {
            if let known = try await BlockingPool.shared.run({ try replica.database.packageIndex(content, size: size) })
            {
                return known
            }
        } catch {
            // A damaged row: the cloud has it too.
            logger.warning("an index is read from the cloud again", metadata: ["why": "\(error)"])
        }
        let manifest = try await downloader.manifest(of: content, size: file.size, following: former)
        let index = try await downloader.packageIndex(manifest)
        do {
            try await BlockingPool.shared.run { try replica.database.write(packageIndexes: [content: index]) }
        } catch {
            logger.warning("an index is not kept", metadata: ["why": "\(error)"])
        }
        return index
    }

    // MARK: Sending

    func readSmallPackage(_ package: WantedFile) async -> Result<ReadContent, ReadFailure> {
        do throws(UploadError) {
            return await uploader.readSmallPackage(package, try await datalessParts(of: package))
        } catch {
            return switch error {
            case .changed: .failure(.changed)
            case .unreadable(let why): .failure(.unreadable(why))
            case .lacking: .failure(.lacking)
            case .cloud(let error): .failure(.unreadable("\(error)"))
            }
        }
    }

    /// What a package has of which the content is not here, is sent by the chunks that the cloud has of it, and attributes for which there
    /// is no room here as they were agreed on.
    func datalessParts(of package: WantedFile) async throws(UploadError) -> DatalessParts {
        var parts = DatalessParts()
        guard let facts = package.state.facts else { return parts }
        do throws(FillError) {
            let agreed = try await agreedAttributes(of: package)
            parts.agreed = agreed
            guard facts.datalessElements > 0 else { return parts }
            let tree = try await tree(of: package.place)
            parts = try await downloader.chunks(of: Self.placeholders(in: tree))
            parts.agreed = agreed
            guard try await !settle(parts, of: package.place, tree) else { throw .system(.stale) }
            return parts
        } catch {
            switch error {
            case .system(.stale), .system(.noSuchFileOrDirectory): throw .changed
            case .cloud(let error): throw .cloud(error)
            case .gone: throw .lacking
            case .system, .corrupted, .withdrawn, .superseded, .unsent, .authorGone, .wouldWait:
                throw .unreadable("the content of a file in it is not here: \(error)")
            }
        }
    }

    /// The index that was agreed on, where it has attributes that are not here. What cannot be known of it is not sent.
    private func agreedAttributes(of package: WantedFile) async throws(FillError) -> PackageIndex? {
        let (replica, place, key) = (replica, package.place, package.state.key)
        let agreed = try await onDisk { () -> FileContent? in
            let parent = try replica.tree.openFolder(key: place.folder)
            let folder = try replica.tree.openAny(in: parent.raw, place.name)
            guard try PackageReader.mayLackAttributes(folder: folder.raw) else { return nil }
            for row in try replica.database.synced(key: key) {
                guard case .file(let file) = row.content, file.isPackage else { continue }
                return try file.content == nil ? replica.database.former(file.revision)?.file : file
            }
            return nil
        }
        guard let agreed else { return nil }
        do throws(FillError) { return try await packageIndex(of: agreed) } catch {
            // What cannot be had only now is waited for: without it these attributes would be lost to all devices.
            guard Self.isAbsence(error) else { throw error }
            logger.warning("attributes of what is in a package are lost", metadata: ["why": "\(error)"])
            return nil
        }
    }

    /// Some of a package could not be brought here: what of it nobody has, hinders it no longer from being sent, or from leaving.
    /// - Returns: whether there was such a thing, and who waits for the content is told.
    func settleParts(of place: LocalPlace, _ key: InodeKey) async -> Bool {
        do throws(FillError) {
            let tree = try await tree(of: place)
            guard tree.state.key == key else { return false }
            return try await settle(try await downloader.chunks(of: Self.placeholders(in: tree)), of: place, tree)
        } catch {
            logger.info("parts of a package are not here", metadata: ["name": "\(place.name)", "why": "\(error)"])
            return false
        }
    }

    private static func placeholders(in tree: PackageTree) -> [(placeholder: Placeholder, key: InodeKey)] {
        tree.entries.compactMap { entry in entry.state.placeholder.map { ($0, entry.state.key) } }
    }

    /// - Returns: whether anything was not as the cloud has it.
    private func settle(
        _ parts: DatalessParts,
        of place: LocalPlace,
        _ tree: PackageTree
    ) async throws(FillError) -> Bool {
        guard !parts.lost.isEmpty || !parts.outgrown.isEmpty else { return false }
        try await takeOut(parts.lost, of: place, tree)
        await fit(parts.outgrown, in: tree)
        synchronizer.noteOtherContents(in: place)
        return true
    }

    /// Files that stand for a content that nobody has, and nobody ever will: what was only announced, was moved into a package and never
    /// sent. With them a package could not be sent, whatever is written in it. Not a byte of them is here either.
    private func takeOut(_ lost: Set<InodeKey>, of place: LocalPlace, _ tree: PackageTree) async throws(FillError) {
        guard let path = path(of: place) else { return }
        let folders = folders(of: tree)
        for entry in tree.entries where lost.contains(entry.state.key) {
            guard let parent = folders[entry.element.path.parent], let name = entry.element.path.last else { continue }
            let shown = entry.element.path.names.reduce(path) { $0.appending($1) }
            guard !isPartlyHere(LocalPlace(folder: parent, name: name)) else { throw .gone }
            let act = Mutation.remove(
                parent: parent,
                name: name,
                expecting: LocalEvidence(entry.state),
                isFolder: false
            )
            guard case .success? = await synchronizer.device.perform(act, at: shown) else { continue }
            logger.warning("taken out of a package: nobody has its content", metadata: ["path": "\(shown)"])
        }
    }

    /// What was announced with another size than it has in the cloud gets that.
    private func fit(_ sizes: [InodeKey: Int64], in tree: PackageTree) async {
        let folders = folders(of: tree)
        for entry in tree.entries {
            guard let size = sizes[entry.state.key], var placeholder = entry.state.placeholder, let mount,
                let parent = folders[entry.element.path.parent], let name = entry.element.path.last
            else { continue }
            placeholder.size = size
            placeholder.generation = .random(in: .min ... .max)
            let (evidence, fitting) = (LocalEvidence(entry.state), placeholder)
            let result = await withCheckedContinuation { continuation in
                mount.evict(in: parent, name, expecting: evidence, as: fitting) { continuation.resume(returning: $0) }
            }
            if case .failure(let why) = result {
                logger.info("a placeholder keeps its old size for now", metadata: ["name": "\(name)", "why": "\(why)"])
            }
        }
    }

    // MARK: Appearing

    func stagePackage(_ remote: RemoteItem, _ file: FileContent) async throws -> String {
        _ = try await packageIndex(of: file)
        let replica = replica
        let staged = try await BlockingPool.shared.run { try PackageStaging.stage(remote, file, in: replica) }
        populator.packages.noteMade(staged.state.key)
        synchronizer.device.stagedPackages[staged.name] = staged.state
        return staged.name
    }

    // MARK: Replacing

    /// Files whose contents are brought together at a time: each takes a descriptor.
    private static let filesAtOnce = 500

    /// The new state of a package that is here, beside the tree: files that did not change are linked, those that were here are brought here,
    /// of all others the content comes when somebody asks for it.
    func wholePackage(_ wanted: WantedContent) async throws(FillError) -> String {
        guard let content = wanted.file.content else { throw .gone }
        let former: FileContent? = if case .file(let file)? = wanted.row?.content { file } else { nil }
        let index = try await packageIndex(of: wanted.file, following: former?.content)
        let chunks = PackageChunks(try await downloader.manifest(of: content, size: wanted.file.size))
        guard chunks.areThose(of: index) else { throw .corrupted(PackageChunks.areOthers) }
        let old = try await oldPackage(wanted, former)
        let (replica, remote, revision) = (replica, wanted.remote, wanted.file.revision)
        let builder = try await onDisk {
            let sources = PackageSources(index, chunks, old)
            return try PackageBuilder(
                index,
                revision: revision,
                attributes: remote.attributes,
                older: old?.folder.descriptor,
                in: replica.staging,
                source: { sources.source(of: $0) }
            )
        }
        do throws(FillError) {
            let shown = path(of: wanted.place)?.description ?? wanted.place.name.description
            try await fill(builder, chunks, old, remote.id, shown: shown)
            let state = try await onDisk {
                let state = try builder.finish().state
                // A crash after it is published leaves no file of zeros.
                if !builder.wanted.isEmpty {
                    try replica.tree.synchronize()
                    try builder.waitWritten()
                }
                return state
            }
            populator.packages.noteMade(state.key)
            synchronizer.device.stagedPackages[builder.name] = state
            return builder.name
        } catch {
            synchronizer.device.discard(builder.name)
            throw error
        }
    }

    /// - Parameter shown: for people, what is on its way.
    func fill(
        _ builder: PackageBuilder,
        _ chunks: PackageChunks,
        _ old: OldPackage?,
        _ item: ItemID,
        shown: String
    ) async throws(FillError) {
        let (key, replica) = (key, replica)
        try await onDisk {
            let hole = [UInt8](repeating: 0, count: Manifest.maximumChunkSize).withUnsafeBytes {
                chunkID(of: $0, key: key)
            }
            let needed = Sizes.sum(
                builder.wanted.lazy.map { chunks.roomNeeded(from: $0.offset, size: $0.size, hole: hole) }
            )
            // What is no larger than what it replaces gives back at least what it takes.
            let isLarger = old.map { $0.chunks.size < chunks.size } ?? true
            let room = try replica.tree.freeBytes() - (isLarger ? ContentFiller.roomLeft : 0)
            guard needed <= 0 || needed <= room else { throw Errno.noSpace }
        }
        let total = Sizes.sum(builder.wanted.lazy.map(\.size))
        let token = meter.begin(item, path: shown, direction: .download, total: total)
        defer { meter.end(token) }
        for start in stride(from: 0, to: builder.wanted.count, by: Self.filesAtOnce) {
            let group = try builder.wanted[start..<min(builder.wanted.count, start + Self.filesAtOnce)].map {
                file throws(FillError) in
                // It would stay empty.
                guard let entries = chunks.index(from: file.offset, size: file.size) else {
                    throw FillError.corrupted(PackageChunks.areOthers)
                }
                return (file, entries)
            }
            let contents = try await onDisk {
                let reuse = old.map { OldChunks($0, key: key) }
                let parts = try group.map { file, entries in
                    let content = StagedContent(name: builder.name, try builder.open(file))
                    return (content, try reuse?.lacking(of: entries, after: content) ?? entries, file.size)
                }
                return JoinedContents(parts)
            }
            if !contents.entries.isEmpty {
                try await downloader.fetch(contents.entries, into: contents, token: token, written: {})
            }
        }
    }

    /// What is here of it, if that is what was agreed on.
    private func oldPackage(_ wanted: WantedContent, _ former: FileContent?) async throws(FillError) -> OldPackage? {
        guard let former, former.isPackage, let content = former.content else { return nil }
        let evidence = wanted.evidence
        let known: PackageIndex?
        do throws(FillError) { known = try await packageIndex(of: former) } catch {
            // Another content has taken its place, of which this device was told only now: it would ask for ever.
            guard Self.isAbsence(error) else { throw error }
            known = nil
        }
        let chunks = PackageChunks(try await downloader.manifest(of: content, size: former.size))
        let (replica, place) = (replica, wanted.place)
        return try await onDisk { () -> OldPackage? in
            let folder = try replica.tree.openFolder(key: place.folder)
            let package = OwnedFile(try replica.tree.openAny(in: folder.raw, place.name))
            let tree = try PackageTree(folder: package.descriptor)
            guard evidence.describes(tree.state) else { throw Errno.stale }
            // The tree is as it was agreed on, unless this disk has no room for some of its attributes.
            guard let index = known ?? (chunks.areThose(of: tree.index) ? tree.index : nil) else { return nil }
            return OldPackage(folder: package, tree: tree, index: index, chunks: chunks)
        }
    }

    func onDisk<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws(FillError) -> Value {
        do { return try await BlockingPool.shared.run(body) } catch let error as Errno {
            throw .system(error)
        } catch {
            throw .corrupted("\(error)")
        }
    }
}
