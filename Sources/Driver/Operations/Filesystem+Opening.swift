import CFuse3
import CLinux
import Glibc
import Logging
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

extension Filesystem {
    /// The flags for the backing file. Creation, truncation and appending are the driver's own; the kernel has done the rest.
    static func backingFlags(_ flags: Int32) -> Int32 {
        let dropped =
            O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK | Int32(CLINUX_O_DIRECT)
            | executionFlag
        let kept = flags & ~dropped
        // Opening for reading with O_TRUNC truncates, which takes a writable descriptor.
        return isWriting(flags) && kept & O_ACCMODE == O_RDONLY ? kept | O_RDWR : kept
    }

    /// Whether an open may change the file.
    static func isWriting(_ flags: Int32) -> Bool { flags & O_ACCMODE != O_RDONLY || flags & O_TRUNC != 0 }

    func open(_ request: Request, _ id: fuse_ino_t, _ flags: Int32) {
        if VersionTree.owns(id) { return openVersion(request, id, flags) }
        request.attempt { () throws(Errno) in
            let node = try node(id)
            let isWriting = Self.isWriting(flags)
            guard host.claimsExist, let path = path(of: node) else { return open(request, node, flags) }
            afterClaims(request, path, forWriting: isWriting, mayWait: flags & O_NONBLOCK == 0) { [self] in
                open(request, node, flags)
            }
        }
    }

    /// Goes on when nobody's explicit claim is in the way any more; at once where there are none.
    func afterClaims(
        _ request: Request,
        _ path: ItemPath,
        forWriting: Bool = false,
        mayWait: Bool = true,
        then: @escaping @Sendable () throws(Errno) -> Void
    ) {
        guard host.claimsExist else { return request.attempt(then) }
        deferrals.wait(
            request,
            begin: { completion in
                host.openWaits(path: path, forWriting: forWriting, mayWait: mayWait, threadID: request.thread) {
                    completion($0.map { .failure($0) } ?? .success(()))
                }
            },
            nothing: (),
            resume: { result in
                request.attempt { () throws(Errno) in
                    try result.get()
                    try then()
                }
            }
        )
    }

    /// After claims. Answers now or later.
    private func open(_ request: Request, _ node: Node, _ flags: Int32) {
        request.attempt { () throws(Errno) in
            // Closed since it began to wait.
            guard admits(request) else { throw .permissionDenied }
            try requireAccess(request, node, Self.wantedAccess(flags))
        } whenAllowed: {
            admit(request, node, flags)
        }
    }

    /// The kernel's own __FMODE_EXEC.
    private static let executionFlag: Int32 = 0o40

    private static func wantedAccess(_ flags: Int32) -> Int32 {
        switch flags & O_ACCMODE {
        case O_RDONLY where flags & O_TRUNC != 0: R_OK | W_OK
        // The kernel marks an open for execution, which needs no permission to read.
        case O_RDONLY: flags & executionFlag != 0 ? 0 : R_OK
        case O_WRONLY: W_OK
        default: R_OK | W_OK
        }
    }

    private func admit(_ request: Request, _ node: Node, _ flags: Int32) {
        let isWriting = Self.isWriting(flags)
        let discards = isWriting && flags & O_TRUNC != 0
        let admission = node.beginUse(isWriting: isWriting, discards: discards, thread: request.thread) { [self] in
            worker.run { [self] in admit(request, node, flags) }
        }
        switch admission {
        case .waits: return
        case .sentAway: request.fail(.stale)
        case .needsContent:
            withWholeContent(request, node, waitsForAuthor: flags & O_NONBLOCK == 0) { [self] in
                admit(request, node, flags)
            }
        case .admitted(let facts):
            do throws(Errno) {
                let handle = try makeHandle(request, node, flags, facts)
                host.used(node.key)
                reply(request, handle)
            } catch {
                if isWriting { noteWriterEnded(node, wrote: false) } else { node.endUse(isWriting: false) }
                request.fail(error)
            }
        }
    }

    private func makeHandle(
        _ request: Request,
        _ node: Node,
        _ flags: Int32,
        _ facts: Node.Facts
    ) throws(Errno) -> Handle {
        let path = try descriptor(of: node)
        let isWriting = Self.isWriting(flags)
        // Root may read everything, and the kernel reads by itself: nothing has to be opened here.
        if !isWriting, facts.placeholder == nil, isPrivileged, mayPass {
            return Handle(node: node, descriptor: nil, isWritable: false, thread: request.thread)
        }
        let file = try makingRoom { () throws(Errno) in
            SharedDescriptor(try checked(clinux_reopen(path.raw, Self.backingFlags(flags))))
        }
        guard isWriting else {
            guard facts.placeholder != nil, let dataless = try placeholderFile(of: node) else {
                return Handle(node: node, descriptor: file, isWritable: false, thread: request.thread)
            }
            return streamingHandle(request, node, file, dataless)
        }
        // One that loses its content is written down with what comes instead.
        if flags & O_TRUNC == 0 { try replica.tree.unsettled.settle(node.key, file.raw) }
        let mayMap = flags & O_ACCMODE == O_RDWR
        let handle = Handle(node: node, descriptor: file, isWritable: true, mayMap: mayMap, thread: request.thread)
        if flags & O_TRUNC != 0 {
            if facts.placeholder != nil { try discardContent(of: node) }
            try checked(clinux_truncate(file.raw, 0))
            handle.hasWritten.store(true, ordering: .relaxed)
            noteWritten(node)
        }
        try dropPrivileges(request, node)
        return handle
    }

    private func streamingHandle(
        _ request: Request,
        _ node: Node,
        _ file: SharedDescriptor,
        _ dataless: PlaceholderFile
    ) -> Handle {
        let isFirst = node.state.withLock { state in
            state.streaming[ObjectIdentifier(dataless), default: 0] += 1
            return state.streaming[ObjectIdentifier(dataless)] == 1
        }
        if isFirst { host.datalessOpened(dataless, threadID: request.thread) }
        return Handle(
            node: node,
            descriptor: file,
            isWritable: false,
            thread: request.thread,
            dataless: dataless
        )
    }

    /// The backing file of a handle, opened anew if the handle keeps none.
    func file(of handle: Handle) throws(Errno) -> SharedDescriptor {
        if let known = handle.descriptor { return known }
        let path = try descriptor(of: handle.node)
        let flags = handle.isWritable ? O_RDWR : O_RDONLY
        return try makingRoom { () throws(Errno) in SharedDescriptor(try checked(clinux_reopen(path.raw, flags))) }
    }

    // MARK: Releasing

    func release(_ request: Request, _ number: UInt64) {
        release(number)
        request.succeed()
    }

    func release(_ number: UInt64) {
        guard case .file(let handle) = open.remove(number) else { return }
        if outlives(handle) { writerWatch.keep(handle) } else { released(handle) }
    }

    func released(_ handle: Handle) {
        let node = handle.node
        if let dataless = handle.dataless {
            let isLast = node.state.withLock { state in
                state.streaming[ObjectIdentifier(dataless), default: 1] -= 1
                guard state.streaming[ObjectIdentifier(dataless)] == 0 else { return false }
                state.streaming[ObjectIdentifier(dataless)] = nil
                return true
            }
            if isLast { host.datalessClosed(dataless) }
        }
        let wroteDirectly = endDirectWriting(handle)
        endRoute(of: handle)
        if handle.isWritable {
            let wrote = wroteDirectly || handle.hasWritten.load(ordering: .relaxed)
            if wrote { reportOrphan(handle) }
            if handle.dropSyncDescriptor() { keptForSync.subtract(1, ordering: .relaxed) }
            noteWriterEnded(node, wrote: wrote)
        } else {
            node.endUse(isWriting: false)
            host.used(node.key)
        }
        let attributesAreOld = node.state.withLock { state in
            guard state.handles == 0, state.attributesAreOld else { return false }
            state.attributesAreOld = false
            return true
        }
        if attributesAreOld { notices.push(.attributes(node: node.id)) }
    }

    /// The same of one that a mapping had kept. The kernel may have forgotten the inode meanwhile: then nobody else closes what it has
    /// here.
    func releasedLate(_ handle: Handle) {
        released(handle)
        if table.node(handle.node.id) == nil { dropped(handle.node) }
    }

    /// What was written to an inode that the engine had replaced, itself or with the package in which it lies, is in no file any more: the
    /// host keeps it.
    private func reportOrphan(_ handle: Handle) {
        let node = handle.node
        let (isReplaced, last) = node.state.withLock { ($0.phase == .replaced, ($0.parent, $0.name)) }
        // What a program has removed there itself was meant to go.
        let package = isReplaced || node.link == nil ? nil : replacedPackage(around: node)
        guard isReplaced || package != nil else { return }
        do throws(Errno) {
            // Its own still leads there when the package's old state has been removed, and with it the way by names.
            let path: SharedDescriptor
            if let own = handle.descriptor ?? handle.syncDescriptor {
                path = own
            } else {
                path = try descriptor(of: node)
            }
            if let package, try diskStatus(path).st_nlink > 1 {
                // The package's new state has the same file, and what was written there.
                return report(.content, package.parent, package.name, nil, isFolder: true)
            }
            let file = try OwnedDescriptor(reopening: path.raw, flags: O_RDONLY)
            host.orphanWritten(
                key: node.key,
                lastParent: package?.parent ?? last.0,
                lastName: last.1,
                descriptor: file
            )
        } catch {
            logger.error(
                "bytes written to a replaced file cannot be kept",
                metadata: ["file": "\(last.1)", "why": "\(error)"]
            )
        }
    }
}

extension Request {
    /// As `attempt`, for what goes on with a continuation of its own.
    func attempt(_ check: () throws(Errno) -> Void, whenAllowed body: () -> Void) {
        do throws(Errno) { try check() } catch { return fail(error) }
        body()
    }
}
