import CLinux
import Driver
import EngineCore
import Glibc
import Logging
import Replica
import SystemPackage
import UbiquityModel

/// Contents that become files, or packages, of their own beside an item. Each is prepared beside the tree and appears whole: whoever is killed
/// meanwhile leaves no part of it that would be taken for all.
extension ContainerEngine {
    /// The version becomes a file, or package, of its own beside the item.
    func keepBeside(_ item: Resolved, _ version: ItemVersion) async throws(EngineError) {
        guard let name = item.path.last else { throw .failed("the root has no versions") }
        let (wanted, folder) = (name.labelled(version.device), item.path.parent)
        if item.state.kind == .package {
            let staged = try await stagePackage(of: version, like: item)
            return try await putBeside(staged, as: wanted, in: folder)
        }
        let known = item.remote?.attributes
        let attributes = ItemAttributes(
            modified: version.modified,
            mode: known?.mode ?? 0o644,
            extended: known?.extended ?? [:]
        )
        let staged: StagedContent
        do throws(FillError) {
            staged = try await onDisk { [replica] in StagedContent(try replica.staging.makeFile()) }
        } catch { throw failed(error, item.path) }
        do throws(FillError) {
            try await fetch(version, into: staged)
            try await finish(staged, version.size, attributes)
        } catch {
            synchronizer.device.discard(staged.name)
            throw failed(error, item.path)
        }
        try await putBeside(staged.name, as: wanted, in: folder)
    }

    /// What was fetched may have taken long: only now it gets its name.
    private func putBeside(_ staged: String, as wanted: Name, in folder: ItemPath) async throws(EngineError) {
        let free: Name
        do throws(EngineError) { free = try freeName(wanted, in: folder) } catch {
            synchronizer.device.discard(staged)
            throw error
        }
        try await put(staged, as: free, in: folder)
    }

    /// Bytes that were written to an inode after the engine had replaced it: they become a file beside the item, or where there is still a
    /// folder above it.
    func keepOrphan(_ file: OwnedFile, lastParent: InodeKey, lastName: Name) async {
        do throws(EngineError) {
            let staged = try await staged(copyOf: file)
            let name = lastName.labelled(synchronizer.device.deviceName)
            var folder = folderForOrphans(of: lastParent)
            while true {
                do throws(EngineError) {
                    return try await put(
                        staged,
                        as: try freeName(name, in: folder),
                        in: folder,
                        isPatient: true,
                        keepsStaged: !folder.isRoot
                    )
                } catch {
                    guard !folder.isRoot else { throw error }
                    folder = folder.parent
                }
            }
        } catch {
            logger.error(
                "bytes written to a replaced file are not kept",
                metadata: ["name": "\(lastName)", "why": "\(error)"]
            )
        }
    }

    /// Puts what is staged at a name that is free: from then on it is as if a program had made it.
    /// - Parameters:
    ///   - isPatient: waits for programs that coordinate there.
    ///   - keepsStaged: also if it cannot be put there.
    private func put(
        _ staged: String,
        as name: Name,
        in folder: ItemPath,
        isPatient: Bool = false,
        keepsStaged: Bool = false
    ) async throws(EngineError) {
        let path = folder.appending(name)
        do throws(EngineError) {
            let parent = try resolve(folder).state.key
            let act = Mutation.publish(staged: staged, parent: parent, name: name, expecting: .absent)
            var result = await synchronizer.device.perform(act, at: path)
            while isPatient, result == nil {
                await synchronizer.device.claims.whenFree(path)
                result = await synchronizer.device.perform(act, at: path)
            }
            switch result {
            case .success(let result):
                host.changed(
                    LocalChange(
                        aspects: [.entry, .content],
                        parent: parent,
                        name: name,
                        key: result.state?.key,
                        mayHaveOtherNames: false,
                        isFolder: result.state?.kind != .file
                    )
                )
            case .failure(.stale), .failure(.busy), .failure(.notEmpty):
                throw .busy("\(path): something else appeared there meanwhile")
            case .failure(.system(.noSpace)): throw .noSpace
            case .failure(.system(let error)): throw .failed("\(path): \(error)")
            case nil: throw .busy("\(path): a program coordinates there")
            }
        } catch {
            if !keepsStaged { synchronizer.device.discard(staged) }
            throw error
        }
    }

    // MARK: Preparing

    /// All of it, whatever was read of it before, with what the file has besides.
    private func staged(copyOf file: OwnedFile) async throws(EngineError) -> String {
        let replica = replica
        do throws(FillError) {
            return try await onDisk {
                let staged = StagedContent(try replica.staging.makeFile())
                do throws(Errno) {
                    try staged.copy(from: file.descriptor)
                    let state = try BackingTree.observe(descriptor: file.descriptor)
                    let extended = (try? replica.tree.extendedAttributes(descriptor: file.descriptor)) ?? [:]
                    // The bytes are what matters, and they stay without the rest.
                    try? staged.set(ItemAttributes(modified: state.modified, mode: state.mode, extended: extended))
                    try checked(clinux_fsync(staged.descriptor))
                } catch {
                    try? replica.staging.remove(staged.name)
                    throw error
                }
                return staged.name
            }
        } catch {
            if case .system(.noSpace) = error { throw .noSpace }
            throw .failed("\(error)")
        }
    }

    private func finish(
        _ staged: StagedContent,
        _ size: Int64,
        _ attributes: ItemAttributes
    ) async throws(FillError) {
        try await onDisk {
            // It may end with a hole.
            try checked(clinux_truncate(staged.descriptor, size))
            try? staged.set(attributes)
            // The version may go from the cloud when this one is there.
            try checked(clinux_fsync(staged.descriptor))
        }
    }

    /// Not in a package: there it would be part of a document that knows nothing of it.
    private func folderForOrphans(of lastParent: InodeKey) -> ItemPath {
        let package = (try? populator.packages.package(around: lastParent)) ?? nil
        return replica.folders.path(of: package?.folder ?? lastParent) ?? .root
    }

    private func freeName(_ wanted: Name, in folder: ItemPath) throws(EngineError) -> Name {
        var name = wanted
        for number in 2..<10_000 {
            do throws(EngineError) { _ = try resolve(folder.appending(name)) } catch {
                if case .notFound = error { return name }
                throw error
            }
            name = wanted.numbered(number)
        }
        throw .failed("no free name for \(wanted)")
    }
}

extension StagedContent {
    /// From its beginning to its end.
    fileprivate func copy(from input: Int32) throws(Errno) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 4096)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while true {
            let count = try Self.read(input, into: buffer, at: offset)
            if count == 0 { break }
            try write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
            offset += Int64(count)
        }
        // What ends with a hole is as long all the same.
        try checked(clinux_truncate(descriptor, offset))
    }
}
