import CFuse3
import CLinux
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// The apply threads' side: how a mutation gets to where it is carried out.
extension Filesystem {
    func perform(_ mutation: Mutation, _ acting: Acting) -> Result<MutationResult, MutationFailure> {
        performOutside(mutation) ?? throughMount(mutation, acting)
    }

    /// One after the other. What is published through the mount, with nothing else between, is one errand for the thread that does so.
    func perform(_ mutations: [Mutation], _ acting: Acting) -> [Result<MutationResult, MutationFailure>] {
        var results: [Result<MutationResult, MutationFailure>] = []
        var errand: [Mutation] = []
        for mutation in mutations {
            let result = performOutside(mutation)
            if result == nil, case .publish = mutation {
                errand.append(mutation)
                continue
            }
            results += publish(errand, acting) + [result ?? throughMount(mutation, acting)]
            errand = []
        }
        return results + publish(errand, acting)
    }

    /// Without the mount; `nil` where it has to go through it.
    private func performOutside(_ mutation: Mutation) -> Result<MutationResult, MutationFailure>? {
        // The kernel would let the request wait behind a program's on the same file: not even begun.
        if let key = mutation.writersHinder, table.node(key)?.hasWriters == true { return .failure(.busy) }
        let folders = mutation.folders
        guard table.reserve(folders) else { return nil }
        defer { for waiting in table.unreserve(folders) { worker.run(waiting) } }
        do throws(MutationFailure) {
            return .success(try directly(mutation))
        } catch {
            return .failure(error)
        }
    }

    // MARK: In the backing tree

    /// The kernel knows none of the folders, so that nobody can watch them, and gets to know none meanwhile.
    private func directly(_ mutation: Mutation) throws(MutationFailure) -> MutationResult {
        let result: MutationResult
        switch mutation {
        case .publish(let staged, let parent, let name, let expecting):
            guard let stagedName = try? Name(staged) else { throw .stale }
            result = try publish(stagedName, parent, try folder(parent), name, expecting)
        case .replacePackage(let staged, let parent, let name, let expecting, let isPatient):
            guard let stagedName = try? Name(staged) else { throw .stale }
            result = try replacePackage(
                stagedName,
                parent,
                try folder(parent),
                name,
                expecting,
                isPatient: isPatient
            )
        case .removePackage(let parent, let name, let expecting, let isPatient, let staged):
            guard let stagedName = try? Name(staged) else { throw .stale }
            result = try removePackage(
                stagedName,
                parent,
                try folder(parent),
                name,
                expecting,
                isPatient: isPatient
            )
        case .remove(let parent, let name, let expecting, let isFolder):
            result = try removal(parent, try folder(parent), name, expecting, isFolder: isFolder)
        case .move(let fromParent, let fromName, let toParent, let toName, let expecting):
            result = try relocation(
                (fromParent, try folder(fromParent), fromName),
                (toParent, try folder(toParent), toName),
                expecting
            )
        case .setAttributes(let parent, let name, let expecting, let modified, let mode, let extended):
            result = try setDirectly(
                parent,
                name,
                expecting,
                AttributeChange(modified: modified, mode: mode, extended: extended)
            )
        }
        // Known nevertheless, by another name: what the kernel has of it is old.
        if let key = mutation.writersHinder ?? result.state?.key, table.isKnown(key), let node = table.node(key) {
            notices.push(.attributes(node: node.id))
        }
        return result
    }

    private func folder(_ key: InodeKey) throws(MutationFailure) -> SharedDescriptor {
        try failing { () throws(Errno) in try folderDescriptor(key) }
    }

    struct AttributeChange: Sendable {
        var modified: Timestamp?
        var mode: UInt16?
        var extended: (set: [[UInt8]: [UInt8]], remove: [[UInt8]])?
    }

    private func setDirectly(
        _ parent: InodeKey,
        _ name: Name,
        _ evidence: LocalEvidence,
        _ change: AttributeChange
    ) throws(MutationFailure) -> MutationResult {
        let descriptor = try folder(parent)
        try withUnchanged(evidence, parent, descriptor, name) { (node, item) throws(Errno) in
            try setExtended(item.raw, change.extended)
            var wanted = WantedAttributes()
            if let mode = change.mode, node.kind != .symlink {
                wanted.mode = UInt16(try diskStatus(item.raw).st_mode & 0o7000) | mode & 0o777
            }
            if let modified = change.modified?.parts {
                // Both times, as `touch` sets them: the modification time alone is announced as a writing (IN_MODIFY).
                wanted.modified = timespec(tv_sec: Int(modified.seconds), tv_nsec: Int(modified.nanoseconds))
                wanted.accessed = wanted.modified
            }
            try self.change(node, wanted, isReported: false)
            // A node that lives only for this does not keep what it has learnt: lookups read it again.
            table.advanceEpoch()
        }
        return MutationResult(
            state: try failing { () throws(Errno) in try replica.tree.observe(in: descriptor.raw, name) }
        )
    }

    private func setExtended(
        _ item: Int32,
        _ extended: (set: [[UInt8]: [UInt8]], remove: [[UInt8]])?
    ) throws(Errno) {
        guard let extended else { return }
        for name in extended.remove.sorted(by: { $0.lexicographicallyPrecedes($1) })
        where ExtendedAttributes.isSynced(name) {
            let result = clinux_xattr_remove(item, name.map { CChar(bitPattern: $0) } + [0])
            if result < 0, -result != ENODATA { throw Errno(rawValue: -result) }
        }
        for (name, value) in extended.set.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) })
        where ExtendedAttributes.isSynced(name) {
            let result = value.withUnsafeBytes { value in
                clinux_xattr_set(item, name.map { CChar(bitPattern: $0) } + [0], value.baseAddress, value.count, 0)
            }
            try checked(result)
        }
    }

    // MARK: Through the mount

    private func throughMount(_ mutation: Mutation, _ acting: Acting) -> Result<MutationResult, MutationFailure> {
        acting.begin(mutation, expected: mutation.evidenceOfAttributes)
        var failure: Errno?
        do throws(Errno) {
            try acting.inMount { [self] () throws(Errno) in try request(mutation, acting) }
            try noteNothingToSet(mutation, acting)
        } catch { failure = error }
        return end(acting, failure)
    }

    private func publish(_ mutations: [Mutation], _ acting: Acting) -> [Result<MutationResult, MutationFailure>] {
        guard !mutations.isEmpty else { return [] }
        do throws(Errno) {
            return try acting.inMount { [self] () throws(Errno) in
                mutations.map { mutation in
                    acting.begin(mutation)
                    do throws(Errno) { try request(mutation, acting) } catch { return end(acting, error) }
                    return end(acting, nil)
                }
            }
        } catch {
            return mutations.map { _ in .failure(MutationFailure(error)) }
        }
    }

    /// The handler knows better than the errno that came through the kernel.
    private func end(_ acting: Acting, _ failure: Errno?) -> Result<MutationResult, MutationFailure> {
        if let outcome = acting.end() {
            if case .success = outcome, let failure { return .failure(MutationFailure(failure)) }
            return outcome
        }
        return .failure(failure.map { MutationFailure($0) } ?? .stale)
    }

    /// The system calls that become the mutation's requests.
    private func request(_ mutation: Mutation, _ acting: Acting) throws(Errno) {
        switch mutation {
        case .publish(let staged, let parent, let name, let expecting):
            let folder = try mountedFolder(parent, acting)
            let staging = try wayIn(acting).staging
            let flags = expecting == .absent ? UInt32(CLINUX_RENAME_NOREPLACE) : 0
            _ = try name.withCString { name throws(Errno) in
                try checked(clinux_rename_at(staging.raw, staged, folder.raw, name, flags))
            }
        case .replacePackage(let staged, let parent, let name, _, _):
            let folder = try mountedFolder(parent, acting)
            let staging = try wayIn(acting).staging
            _ = try name.withCString { name throws(Errno) in
                try checked(clinux_rename_at(staging.raw, staged, folder.raw, name, UInt32(CLINUX_RENAME_EXCHANGE)))
            }
        case .removePackage(let parent, let name, _, _, let staged):
            let folder = try mountedFolder(parent, acting)
            let staging = try wayIn(acting).staging
            _ = try name.withCString { name throws(Errno) in
                try checked(clinux_rename_at(folder.raw, name, staging.raw, staged, UInt32(CLINUX_RENAME_NOREPLACE)))
            }
        case .remove(let parent, let name, _, let isFolder):
            let folder = try mountedFolder(parent, acting)
            _ = try name.withCString { name throws(Errno) in
                try called(unlinkat(folder.raw, name, isFolder ? AT_REMOVEDIR : 0))
            }
        case .move(let fromParent, let fromName, let toParent, let toName, _):
            let from = try mountedFolder(fromParent, acting)
            let to = try mountedFolder(toParent, acting)
            _ = try fromName.withCString { source throws(Errno) in
                try toName.withCString { target throws(Errno) in
                    try checked(clinux_rename_at(from.raw, source, to.raw, target, UInt32(CLINUX_RENAME_NOREPLACE)))
                }
            }
        case .setAttributes(let parent, let name, _, let modified, let mode, let extended):
            let folder = try mountedFolder(parent, acting)
            let item = try name.withCString { name throws(Errno) in
                SharedDescriptor(try checked(clinux_open_at(folder.raw, name, Self.pathFlags, 0)))
            }
            try setThroughMount(item, AttributeChange(modified: modified, mode: mode, extended: extended), acting)
        }
    }

    /// Each step is a request of its own; the time comes last, since it must stay. By descriptor: a link put there meanwhile leads nowhere.
    private func setThroughMount(_ item: SharedDescriptor, _ change: AttributeChange, _ acting: Acting) throws(Errno) {
        let status = try diskStatus(item.raw)
        let isLink = LocalKind(mode: status.st_mode) == .symlink
        if !isLink { try setExtended(item.raw, change.extended) }
        if let mode = change.mode, !isLink {
            try checked(clinux_chmod(item.raw, UInt32(status.st_mode & 0o7000) | UInt32(mode & 0o777)))
        }
        if let modified = change.modified?.parts {
            // Both times, as `touch` sets them: the modification time alone is announced as a writing (IN_MODIFY).
            let time = timespec(tv_sec: Int(modified.seconds), tv_nsec: Int(modified.nanoseconds))
            var times = [time, time]
            try called(utimensat(item.raw, "", &times, Int32(CLINUX_AT_EMPTY_PATH)))
        }
    }

    /// Attributes that are as they should be make no request.
    private func noteNothingToSet(_ mutation: Mutation, _ acting: Acting) throws(Errno) {
        guard case .setAttributes = mutation, acting.outcome == nil, let key = acting.expected?.key else { return }
        let node = table.node(key)
        let state = try node.map { (node) throws(Errno) in
            let item = try descriptor(of: node)
            return try replica.tree.observe(descriptor: item.raw)
        }
        acting.outcome = state.map { .success(MutationResult(state: $0)) }
    }

    private static let pathFlags = Int32(CLINUX_O_PATH) | O_NOFOLLOW

    /// A folder as programs see it; never through a link or into another mount.
    private func mountedFolder(_ key: InodeKey, _ acting: Acting) throws(Errno) -> SharedDescriptor {
        var folder = try wayIn(acting).root
        guard let path = replica.folders.path(of: key) else { throw .stale }
        var rest = path.names[...]
        while !rest.isEmpty {
            var part = [CChar]()
            while let name = rest.first, part.count + name.bytes.count + 2 < Int(PATH_MAX) {
                if !part.isEmpty { part.append(CChar(bitPattern: UInt8(ascii: "/"))) }
                part += name.bytes.map { CChar(bitPattern: $0) }
                rest.removeFirst()
            }
            part.append(0)
            folder = SharedDescriptor(try checked(clinux_open_beneath(folder.raw, part, Self.pathFlags | O_DIRECTORY)))
        }
        return folder
    }

    private func wayIn(_ acting: Acting) throws(Errno) -> Acting.WayIn {
        if let known = acting.way { return known }
        let root = SharedDescriptor(
            try checked(clinux_open_at(AT_FDCWD, configuration.mountPoint, Int32(CLINUX_O_PATH) | O_DIRECTORY, 0))
        )
        // Somebody may have unmounted us, or mounted something over us.
        guard try diskStatus(root.raw).st_dev == mountDevice.load(ordering: .relaxed) else { throw .notConnected }
        let staging = SharedDescriptor(
            try checked(clinux_open_beneath(root.raw, stagingName, Self.pathFlags | O_DIRECTORY))
        )
        let way = Acting.WayIn(root: root, staging: staging)
        acting.way = way
        return way
    }
}

extension Mutation {
    /// The folders in which it changes a name, or an item.
    var folders: Set<InodeKey> {
        switch self {
        case .publish(_, let parent, _, _), .remove(let parent, _, _, _), .setAttributes(let parent, _, _, _, _, _),
            .replacePackage(_, let parent, _, _, _), .removePackage(let parent, _, _, _, _):
            [parent]
        case .move(let from, _, let to, _, _): [from, to]
        }
    }

    /// The inode on which no writer may be; a move needs none.
    var writersHinder: InodeKey? {
        switch self {
        case .publish(_, _, _, .inode(let evidence)), .remove(_, _, let evidence, _),
            .setAttributes(_, _, let evidence, _, _, _):
            evidence.key
        case .publish(_, _, _, .absent), .move, .replacePackage, .removePackage: nil
        }
    }

    var evidenceOfAttributes: LocalEvidence? {
        if case .setAttributes(_, _, let evidence, _, _, _) = self { evidence } else { nil }
    }
}
