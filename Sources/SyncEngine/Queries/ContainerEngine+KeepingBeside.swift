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

    /// Bytes that were written to an inode after the engine had replaced it. What has no name exists only as long as it is held open: until
    /// there is room for it, or the engine stops, it is tried again.
    func keepOrphan(_ file: OwnedFile, lastParent: InodeKey, lastName: Name) async {
        var pause = Self.firstPause
        while true {
            let isStopping = synchronizer.isStopping
            var isNamed = false
            do {
                let state = try await BlockingPool.shared.run { try BackingTree.observe(descriptor: file.descriptor) }
                // It still has a name if it lies in a package that was replaced.
                isNamed = state.linkCount > 0
                try await keep(orphan: file, lastParent: lastParent, lastName: lastName)
                if isNamed { await noteKept(state) }
                return
            } catch {
                // What goes wrong otherwise, may do so after they had become a file, and would leave one more of them each time.
                let isFull = (error as? EngineError) == .noSpace
                let isTriedAgain = !isStopping && (isFull || pause < Self.longestPause)
                logger.error(
                    "bytes written to a replaced file are not kept\(isNamed || isTriedAgain ? " yet" : "")",
                    metadata: ["name": "\(lastName)", "why": "\(error)"]
                )
                // The old state of a package stays until what was written in it is kept (`keepReplaced`).
                guard isTriedAgain, !isNamed else { return }
            }
            await restWithOrphan(pause)
            pause = min(pause * 2, Self.longestPause)
        }
    }

    private static var firstPause: Duration { .seconds(1) }
    private static var longestPause: Duration { .seconds(60) }

    private func restWithOrphan(_ pause: Duration) async {
        orphansResting += 1
        defer { orphansResting -= 1 }
        let end = ContinuousClock.now + pause
        // A stop has to end this.
        while ContinuousClock.now < end, !synchronizer.isStopping { try? await Task.sleep(for: .milliseconds(250)) }
    }

    /// They become a file beside the item, or where there is still a folder above it.
    func keep(orphan file: OwnedFile, lastParent: InodeKey, lastName: Name) async throws(EngineError) {
        let staged = try await staged(copyOf: file)
        let name = lastName.labelled(synchronizer.device.deviceName)
        var folder = folderForOrphans(of: lastParent)
        while !folder.isRoot {
            do throws(EngineError) { return try await put(staged, as: name, in: folder, isPatient: true) } catch {
                folder = folder.parent
            }
        }
        do throws(EngineError) { try await put(staged, as: name, in: .root, isPatient: true) } catch {
            // It is all that there is of it: if need be, without the mount.
            do throws(FillError) { try await putIntoTree(staged, as: name) } catch {
                // Not one more copy with each attempt: the file itself is still there.
                synchronizer.device.discard(staged)
                throw failed(error, .root)
            }
        }
    }

    /// What a program would see as put there while nothing ran.
    private func putIntoTree(_ staged: String, as wanted: Name) async throws(FillError) {
        let replica = replica
        let name = try await onDisk { () -> Name in
            for number in 1..<10_000 {
                let name = number == 1 ? wanted : wanted.numbered(number)
                do throws(Errno) {
                    try name.withCString { name throws(Errno) in
                        let flags = UInt32(CLINUX_RENAME_NOREPLACE)
                        let (from, to) = (replica.staging.descriptor, replica.tree.rootDescriptor)
                        try checked(clinux_rename_at(from, staged, to, name, flags))
                    }
                } catch {
                    if error == .fileExists { continue }
                    throw error
                }
                try replica.tree.synchronize()
                return name
            }
            throw Errno.fileExists
        }
        let root = replica.tree.rootKey
        mount?.nameAppeared(in: root, name)
        host.changed(
            LocalChange(
                aspects: [.entry, .content],
                parent: root,
                name: name,
                key: nil,
                mayHaveOtherNames: false,
                isFolder: false
            )
        )
    }

    /// Nobody else has these bytes. (A program that coordinates where they go may hold them up: not for ever.)
    func orphansAreKept() async {
        let end = ContinuousClock.now + .seconds(30)
        while orphansBeingKept > 0, ContinuousClock.now < end { try? await Task.sleep(for: .milliseconds(10)) }
    }

    /// Puts what is staged into a folder, or gives it up.
    private func putBeside(
        _ staged: String,
        as wanted: Name,
        in folder: ItemPath,
        isPatient: Bool = false
    ) async throws(EngineError) {
        do throws(EngineError) { try await put(staged, as: wanted, in: folder, isPatient: isPatient) } catch {
            synchronizer.device.discard(staged)
            throw error
        }
    }

    /// How often another name is looked for, if somebody takes the free one meanwhile.
    private static var attempts: Int { 10 }

    /// Puts what is staged at the wanted name, or at the next one that is free: from then on it is as if a program had made it.
    ///
    /// It is durable when this returns: whoever resolves a version after that gives up the one in the cloud.
    /// - Parameter isPatient: waits for programs that coordinate there.
    private func put(
        _ staged: String,
        as wanted: Name,
        in folder: ItemPath,
        isPatient: Bool
    ) async throws(EngineError) {
        for _ in 0..<Self.attempts {
            let name = try freeName(wanted, in: folder)
            let path = folder.appending(name)
            let parent = try resolve(folder).state.key
            let act = Mutation.publish(staged: staged, parent: parent, name: name, expecting: .absent)
            var result = await synchronizer.device.perform(act, at: path)
            while isPatient, result == nil, !synchronizer.isStopping {
                // Not `whenFree`: a stop has to end this wait, and claims are let go of only after it.
                try? await Task.sleep(for: .milliseconds(250))
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
                        isFolder: result.state?.kind == .package || result.state?.kind == .folder
                    )
                )
                return try await makeDurable(parent, path)
            case .failure(.stale), .failure(.busy), .failure(.notEmpty): continue
            case .failure(.system(.noSpace)): throw .noSpace
            case .failure(.system(let error)): throw .failed("\(path): \(error)")
            case nil: throw .busy("\(path): a program coordinates there")
            }
        }
        throw .busy("\(folder.appending(wanted)): something else appears there again and again")
    }

    private func makeDurable(_ folder: InodeKey, _ path: ItemPath) async throws(EngineError) {
        do throws(FillError) {
            try await onDisk { [replica] () throws -> Void in
                let opened = try replica.tree.openFolder(key: folder)
                try checked(clinux_fsync(opened.raw))
            }
        } catch {
            throw failed(error, path)
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
                    staged.setWhatCanBe(
                        ItemAttributes(modified: state.modified, mode: state.mode, extended: extended)
                    )
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
            staged.setWhatCanBe(attributes)
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
    /// The bytes are what matters, and they stay without the rest.
    fileprivate func setWhatCanBe(_ attributes: ItemAttributes) {
        do throws(Errno) { try set(attributes) } catch {
            try? set(ItemAttributes(modified: attributes.modified, mode: attributes.mode, extended: [:]))
        }
    }

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
