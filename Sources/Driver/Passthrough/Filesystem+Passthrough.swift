import CFuse3
import CLinux
import Glibc
import Logging
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// Answers to OPEN and CREATE: which way the content takes, and what follows from it.
extension Filesystem {
    var mayPass: Bool { passthrough.setup != nil }

    /// Answers an OPEN, or a CREATE if there is an entry; now or later.
    func reply(_ request: Request, _ handle: Handle, created entry: stat? = nil) {
        let node = handle.node
        while true {
            let choice = node.chooseRoute(isStreaming: handle.dataless != nil, mayPass: mayPass) { [self] in
                worker.run { [self] in reply(request, handle, created: entry) }
            }
            switch choice {
            case .waits: return
            case .bind: bind(handle)
            case .route(let route):
                handle.setRoute(route)
                return send(request, handle, route, entry)
            }
        }
    }

    private func send(_ request: Request, _ handle: Handle, _ route: Route, _ entry: stat?) {
        var opened = clinux_fuse_opened()
        switch route {
        case .passthrough(let id):
            opened.backing = id
            opened.flags = UInt32(CLINUX_FOPEN_PASSTHROUGH | CLINUX_FOPEN_NOFLUSH)
            backings.noteUse(handle.node)
            begin(direct: handle, created: entry)
        case .uncached: opened.flags = UInt32(CLINUX_FOPEN_DIRECT_IO | CLINUX_FOPEN_NOFLUSH)
        // Whatever is in the page cache is right: content changes through the kernel, or in a new inode. A mapping's pages are written
        // when the file is closed.
        case .cached:
            opened.flags = UInt32(CLINUX_FOPEN_KEEP_CACHE) | (handle.isWritable ? 0 : UInt32(CLINUX_FOPEN_NOFLUSH))
        }
        let number = open.insert(.file(handle))
        // Not before: the watch goes to sleep when it finds none.
        if handle.isDirect, handle.isWritable { writerWatch.noteWriter() }
        opened.handle = number
        let result: Int32
        if var status = entry {
            var created = clinux_fuse_created()
            clinux_fuse_set_created(&created, handle.node.id, &status)
            created.opened = opened
            result = withUnsafeBytes(of: &created) { request.send($0) }
        } else {
            result = withUnsafeBytes(of: &opened) { request.send($0) }
        }
        guard result != 0 else { return }
        // The caller was interrupted: neither RELEASE nor FORGET will come.
        release(number)
        if entry != nil { forget(fuse_ino_t(handle.node.id), 1) }
    }

    // MARK: Binding

    private func bind(_ handle: Handle) {
        let node = handle.node
        let backing: Backing
        do throws(BindingError) {
            backing = .bound(try boundFile(handle))
        } catch {
            logger.debug("no passthrough for a file", metadata: ["why": "\(error)"])
            backing =
                switch error {
                case .refused: .refused(mayTryAgain: false)
                case .helperIsAway: .refused(mayTryAgain: true)
                }
        }
        let waiting = node.endBinding(backing)
        if case .bound = backing { keepBound(node) }
        for continuation in waiting { continuation() }
    }

    private func boundFile(_ handle: Handle) throws(BindingError) -> Int32 {
        guard let channel = passthrough.setup?.channel else { throw .refused(.notSupported) }
        if channel.isResting { throw .helperIsAway }
        let file: SharedDescriptor
        do throws(Errno) { file = try fileToBind(handle, channel) } catch { throw .refused(error) }
        return try channel.open(connection: connection.load(ordering: .relaxed), file: file.raw)
    }

    private func fileToBind(_ handle: Handle, _ channel: BackingChannel) throws(Errno) -> SharedDescriptor {
        let path = try descriptor(of: handle.node)
        // A path alone counts as no use of the inode (`isMapped`). The helper makes one of what it is given.
        guard channel.needsWritableFiles else { return path }
        return try makingRoom { () throws(Errno) in SharedDescriptor(try checked(clinux_reopen(path.raw, O_RDWR))) }
    }

    private func keepBound(_ node: Node) {
        for surplus in backings.insert(node) where !unbind(surplus) {
            if surplus.state.withLock({ $0.direct > 0 }) { _ = backings.insert(surplus) }
        }
    }

    /// Gives a node's backing file up, if no handle uses it.
    @discardableResult
    func unbind(_ node: Node) -> Bool {
        guard node.kind == .file, let id = node.takeBacking() else { return false }
        close(backing: id)
        backings.remove(node)
        return true
    }

    func endRoute(of handle: Handle) {
        guard handle.isRouted else { return }
        if let id = handle.node.endRoute(isDirect: handle.isDirect) {
            close(backing: id)
            backings.remove(handle.node)
        }
    }

    private func close(backing id: Int32) {
        passthrough.setup?.channel.close(connection: connection.load(ordering: .relaxed), id: id)
    }

    // MARK: What is written without our seeing it

    private func begin(direct handle: Handle, created entry: stat?) {
        let node = handle.node
        let status = handle.isWritable ? try? entry ?? diskStatus(descriptor(of: node)) : nil
        node.state.withLock { state in
            state.mayBeMapped = true
            if handle.isWritable { state.directWriters.come(mayMap: handle.mayMap) }
            if state.written == nil { state.written = status.map { WrittenEvidence($0) } }
        }
        // A fifth of what the process may have open: for more than that, and where it fails, what fsync opens has to do (`fileToSynchronize`).
        if handle.isWritable, let file = handle.descriptor, keptForSync.load(ordering: .relaxed) < descriptors.limit / 2
        {
            let reader = clinux_reopen(file.raw, O_RDONLY)
            if reader >= 0 {
                handle.keepForSync(SharedDescriptor(reader))
                keptForSync.add(1, ordering: .relaxed)
            }
        }
        handle.dropDescriptor()
    }

    /// Looks whether a file was written to, and reports it.
    func noteDirectWriting(_ handle: Handle) {
        if findDirectWriting(handle) { noteWritten(handle.node) }
    }

    private func findDirectWriting(_ handle: Handle) -> Bool {
        guard handle.isWritable, handle.isDirect else { return false }
        let node = handle.node
        guard let status = try? diskStatus(descriptor(of: node)) else { return false }
        let now = WrittenEvidence(status)
        let isTooFresh = passthrough.setup?.hasFineTimes == false && now.isTooFresh()
        let isWritten = node.state.withLock { state in
            guard let before = state.written else { return false }
            guard before != now || isTooFresh else { return false }
            state.written = now
            state.wasWrittenDirectly = true
            return true
        }
        // Stores to a mapping move the disk's times, and the kernel's own stay as they were.
        if isWritten, handle.mayMap { notices.push(.attributes(node: node.id)) }
        return isWritten
    }

    /// The last look at what a handle wrote that has left. Whether it, or another one of its kind, wrote anything: the caller reports that.
    func endDirectWriting(_ handle: Handle) -> Bool {
        guard handle.isWritable, handle.isDirect else { return false }
        _ = findDirectWriting(handle)
        return handle.node.state.withLock { state in
            let wrote = state.wasWrittenDirectly
            if state.directWriters.end() {
                state.written = nil
                state.wasWrittenDirectly = false
            }
            return wrote
        }
    }

    // MARK: Mappings

    /// Whether a handle that was closed may still be written through, by a mapping. Then it has not left: it is asked about again.
    func outlives(_ handle: Handle) -> Bool {
        guard let look = leave(handle) else { return false }
        // A mapping keeps the kernel's inode, as an open file does: of one that is forgotten there is none. (Without a name nothing may
        // lead to its file any more, which would pass for a use for ever.)
        let isMapped = table.node(handle.node.id) != nil && isUsed(handle.node, reads: false)
        handle.node.state.withLock { $0.directWriters.looked(look, isMapped: isMapped) }
        return isMapped
    }

    /// Before `released`.
    @discardableResult
    func leave(_ handle: Handle) -> DirectWriters.Look? {
        guard handle.isDirect, handle.isWritable else { return nil }
        return handle.node.state.withLock { $0.directWriters.leave() }
    }

    /// Whether programs have a file mapped that was passed through: with `reads` in any way, else for writing. No handle may be open that
    /// counts as such a use.
    func isMapped(_ node: Node, reads: Bool) -> Bool {
        guard node.kind == .file else { return false }
        let look: DirectWriters.Look? = node.state.withLock { state in
            (reads ? state.mayBeMapped : state.directWriters.mayHaveMapped) ? state.directWriters.look() : nil
        }
        guard let look else { return false }
        if isUsed(node, reads: reads) { return true }
        node.state.withLock { state in
            // That is asked only while programs are kept out of the inode and none has it open: nobody has opened it since.
            if reads { state.mayBeMapped = false }
            // What lies in a package is looked at while it can be opened.
            state.directWriters.looked(look, isMapped: false)
        }
        return false
    }

    /// What cannot be found out counts as a use, where this mount passes files through: then the disk knows leases.
    private func isUsed(_ node: Node, reads: Bool) -> Bool {
        guard let path = try? descriptor(of: node),
            let file = try? OwnedDescriptor(reopening: path.raw, flags: reads ? O_RDWR : O_RDONLY)
        else { return true }
        let status = clinux_check_unused(file.raw, reads ? 1 : 0)
        return mayPass ? status != 0 : status == -EAGAIN
    }

    /// Changes attributes of a file: that its times move thereby is no sign of a write.
    func keepingEvidence(_ node: Node, _ change: () throws(Errno) -> Void) throws(Errno) {
        guard node.state.withLock({ $0.written != nil }),
            let handle = open.files.first(where: { $0.node === node && $0.isDirect && $0.isWritable })
        else { return try change() }
        noteDirectWriting(handle)
        try change()
        let status = try diskStatus(descriptor(of: node))
        node.state.withLock { state in
            // Bytes that were written meanwhile show in the size, or are found when the file is closed: the mark is set by then.
            if state.written != nil { state.written = WrittenEvidence(status) }
        }
    }
}

extension Request {
    /// The raw body of a reply; as libfuse's functions, not 0 if the kernel did not take it.
    func send(_ bytes: UnsafeRawBufferPointer) -> Int32 {
        fuse_reply_buf(raw, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    }
}
