import Chunking
import Driver
import EngineCore
import Glibc
import Replica
import SystemPackage
import UbiquityModel

/// Versions of packages: looking into them, reading what lies in them, and making a package of one.
extension ContainerEngine {
    private func content(of version: ItemVersion) -> FileContent {
        FileContent(revision: version.revision, content: version.content, size: version.size, isPackage: true)
    }

    private func chunks(of version: ItemVersion) async throws(FillError) -> PackageChunks {
        if let known = lookedInto, known.content == version.content { return known.chunks }
        let chunks = PackageChunks(try await downloader.manifest(of: version.content, size: version.size))
        lookedInto = (version.content, chunks)
        return chunks
    }

    // MARK: `.versions`

    func packageIndex(of version: ItemVersion) async -> Result<PackageIndex, Errno> {
        do throws(FillError) {
            try requireCloud()
            return .success(try await packageIndex(of: content(of: version)))
        } catch {
            return .failure(error.errno)
        }
    }

    /// A file of a version, whole.
    func openPart(_ part: Range<Int64>, of version: ItemVersion) async -> Result<Int32, Errno> {
        do throws(FillError) {
            let chunks = try await chunks(of: version)
            let size = part.upperBound - part.lowerBound
            guard let entries = chunks.index(from: part.lowerBound, size: size) else {
                throw .corrupted("the package has no file there")
            }
            let staged = try await unnamedFile()
            try await fetch(entries, of: version, size: size, into: staged)
            return .success(try reopened(staged).release())
        } catch {
            return .failure(error.errno)
        }
    }

    // MARK: As one file

    /// All of a version as a tar archive.
    func archive(of version: ItemVersion, mode: UInt16) async throws(FillError) -> OwnedDescriptor {
        let index = try await packageIndex(of: content(of: version))
        let manifest = try await downloader.manifest(of: version.content, size: version.size)
        // An index may be known since before that was looked at.
        guard PackageChunks(manifest).areThose(of: index) else { throw .corrupted(PackageChunks.areOthers) }
        let archive = PackageArchive(index, name: version.name, modified: version.modified, mode: mode)
        let start = Int64(index.encoded.count)
        let entries = ChunkIndex(manifest).entries
        let staged = try await unnamedFile()
        let content = ArchivedContent(archive: archive, staged: staged)
        try await onDisk { try content.writeHeaders() }
        try await fetch(
            entries.filter { $0.range.lowerBound >= start },
            of: version,
            size: version.size - start,
            into: content
        )
        return try reopened(staged)
    }

    // MARK: Beside the item

    /// Prepares a version to be a package of its own.
    func stagePackage(of version: ItemVersion, like item: Resolved) async throws(EngineError) -> String {
        let attributes = item.remote?.attributes ?? item.row?.attributes
        do throws(FillError) {
            let staged = try await stageVersion(
                version,
                ItemAttributes(
                    modified: version.modified,
                    mode: attributes?.mode ?? 0o755,
                    extended: attributes?.extended ?? [:]
                )
            )
            synchronizer.device.stagedPackages[staged.name] = staged.state
            return staged.name
        } catch { throw failed(error, item.path) }
    }

    private func stageVersion(
        _ version: ItemVersion,
        _ attributes: ItemAttributes
    ) async throws(FillError) -> (name: String, state: LocalState) {
        let index = try await packageIndex(of: content(of: version))
        let chunks = try await chunks(of: version)
        guard chunks.areThose(of: index) else { throw .corrupted(PackageChunks.areOthers) }
        let replica = replica
        let builder = try await onDisk {
            try PackageBuilder(
                index,
                revision: version.revision,
                attributes: attributes,
                older: nil,
                in: replica.staging
            ) { _ in .whole }
        }
        do throws(FillError) {
            try await fill(builder, chunks, nil, .root, shown: version.name.description)
            return try await onDisk {
                let staged = try builder.finish()
                // The version may go from the cloud when this one is there.
                try replica.tree.synchronize()
                try builder.waitWritten()
                return staged
            }
        } catch {
            synchronizer.device.discard(builder.name)
            throw error
        }
    }
}

/// The place of an archive's files.
private struct ArchivedContent: ContentDestination {
    let archive: PackageArchive
    let staged: StagedContent

    func writeHeaders() throws(Errno) {
        for (offset, bytes) in archive.headers {
            let failure = bytes.withUnsafeBytes { bytes -> Errno? in
                do throws(Errno) { try staged.write(bytes, at: offset) } catch { return error }
                return nil
            }
            if let failure { throw failure }
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) {
        // A chunk is of one file, so that what follows in the content follows in the archive.
        guard let place = archive.offset(of: offset) else { throw .invalidArgument }
        try staged.write(bytes, at: place)
    }
}
