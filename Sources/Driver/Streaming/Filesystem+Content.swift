import CLinux
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// Dataless files: their one object, their becoming whole, and the giving up of their content.
extension Filesystem {
    /// The object that fills a node's inode; nil if the inode turns out to be whole, which the node then knows.
    func placeholderFile(of node: Node) throws(Errno) -> PlaceholderFile? {
        let path = try descriptor(of: node)
        if let file = try placeholderFile(path.raw, node.key) { return file }
        // Filled or truncated since the node was made.
        try noteWhole(node)
        return nil
    }

    /// The object that fills an inode; nil if it is whole.
    func placeholderFile(_ path: Int32, _ key: InodeKey) throws(Errno) -> PlaceholderFile? {
        while let placeholder = try PlaceholderOperations.read(path) {
            let file = try placeholders.file(key) { () throws(Errno) in
                let descriptor = try OwnedDescriptor(reopening: path, flags: O_RDWR)
                var status = clinux_status()
                try checked(clinux_status_of(descriptor.raw, &status))
                // Nothing is in what takes no room on the disk.
                let present = status.blocks == 0 ? ByteRangeSet() : host.presentRanges(of: key, placeholder)
                return PlaceholderFile(
                    descriptor: descriptor,
                    placeholder: placeholder,
                    present: present,
                    key: key,
                    unsettled: replica.tree.unsettled
                )
            }
            // Only now nobody can make another one. If the inode was truncated, evicted or finished between, this object must never
            // write; discarding it waits for whoever is at it.
            let isCurrent = try PlaceholderOperations.read(path)?.generation == file.placeholder.generation
            if isCurrent, !file.isDiscarded { return file }
            file.discard()
        }
        return nil
    }

    /// The inode is whole now: what a node says of it is read again, and the kernel asks again.
    /// - Parameter wasFilled: the bytes are those that it always had; who has it open need not notice.
    func noteWhole(_ node: Node, wasFilled: Bool = false) throws(Errno) {
        let descriptor = try descriptor(of: node)
        while true {
            let evictions = node.state.withLock { $0.evictions }
            let seen = try Observation(descriptor: descriptor.raw)
            let isPutOff: Bool? = node.state.withLock { state in
                // Evicted since: what was seen before says of a hole that it is content.
                guard state.evictions == evictions else { return nil }
                state.facts = seen.facts
                guard wasFilled, state.handles > 0 else { return false }
                state.attributesAreOld = true
                return true
            }
            guard let isPutOff else { continue }
            if !isPutOff { notices.push(.attributes(node: node.id)) }
            return
        }
    }

    /// Fetches the whole content, then goes on; fails the request with what the host says.
    /// - Parameter failed: runs instead of `then`.
    func withWholeContent(
        _ request: Request,
        _ node: Node,
        waitsForAuthor: Bool,
        failed: @escaping @Sendable () -> Void = {},
        then: @escaping @Sendable () -> Void
    ) {
        let found: PlaceholderFile?
        do throws(Errno) { found = try placeholderFile(of: node) } catch {
            failed()
            return request.fail(error)
        }
        guard let file = found else { return then() }
        request.attempt { () throws(Errno) in
            deferrals.wait(
                request,
                begin: { completion in
                    host.needContent(
                        file,
                        range: 0..<file.placeholder.size,
                        waitsForAuthor: waitsForAuthor,
                        threadID: request.thread
                    ) { completion($0.map { .failure($0) } ?? .success(())) }
                },
                nothing: (),
                resume: { [self] result in
                    finisher.run { [self] in
                        request.attempt { () throws(Errno) in
                            do throws(Errno) {
                                try result.get()
                                try becomeWhole(node, file)
                            } catch {
                                failed()
                                throw error
                            }
                            then()
                        }
                    }
                }
            )
        }
    }

    /// All ranges are present: the placeholder goes. Finishing twice does no harm.
    private func becomeWhole(_ node: Node, _ file: PlaceholderFile) throws(Errno) {
        // Truncated or evicted between: whoever waited begins again, with what is there now.
        do throws(Errno) { _ = try file.finish() } catch .stale { return }
        try noteWhole(node, wasFilled: true)
    }

    /// O_TRUNC and truncation to nothing of a dataless file: nothing of it is fetched, and what is under way ends.
    func discardContent(of node: Node) throws(Errno) {
        guard let file = try placeholderFile(of: node) else { return }
        try file.truncate()
        try noteWhole(node)
    }

    /// Times or mode of a dataless file. False if it is whole now, so that they are set as on any file.
    func changePlaceholder(_ node: Node, modified: Timestamp?, mode: UInt16?) throws(Errno) -> Bool {
        guard let file = try placeholderFile(of: node) else { return false }
        do throws(Errno) {
            try file.setAttributes(modified: modified, mode: mode)
        } catch .stale {
            // Finished or discarded between.
            try noteWhole(node)
            return false
        }
        let placeholder = file.placeholder
        node.state.withLock { if $0.facts.placeholder != nil { $0.facts.placeholder = placeholder } }
        return true
    }

    // MARK: Writers

    /// Bytes of a file have changed: reported once until the engine has collected it.
    func noteWritten(_ node: Node) {
        if node.markDirty() { report(.content, node) }
    }

    /// A writer, counted by `beginUse`, is done.
    func noteWriterEnded(_ node: Node, wrote: Bool) {
        let isLast = node.endUse(isWriting: true)
        if wrote { node.state.withLock { $0.isDirty = false } }
        var aspects: LocalChange.Aspects = wrote ? .content : []
        if isLast { aspects.insert(.closed) }
        if !aspects.isEmpty { report(aspects, node) }
        host.closed(key: node.key)
    }
}
