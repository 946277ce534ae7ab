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
        if let known = placeholders.file(node.key) { return known }
        let path = try descriptor(of: node)
        do throws(Errno) {
            let file = try placeholders.file(node.key) { () throws(Errno) in
                guard let placeholder = try PlaceholderOperations.read(path.raw) else { throw .noAttribute }
                let descriptor = try OwnedDescriptor(reopening: path.raw, flags: O_RDWR)
                let present = host.presentRanges(of: node.key, placeholder)
                return PlaceholderFile(
                    descriptor: descriptor,
                    placeholder: placeholder,
                    present: present,
                    key: node.key
                )
            }
            if !file.isWhole, !file.isDiscarded { return file }
        } catch .noAttribute {
            // Filled since the node was made.
        }
        try noteWhole(node)
        return nil
    }

    /// The inode is whole now: what a node says of it is read again, and the kernel asks again.
    /// - Parameter wasFilled: the bytes are those that it always had; who has it open need not notice.
    func noteWhole(_ node: Node, wasFilled: Bool = false) throws(Errno) {
        let seen = try Observation(descriptor: descriptor(of: node).raw)
        let isPutOff = node.state.withLock { state in
            state.facts = seen.facts
            guard wasFilled, state.handles > 0 else { return false }
            state.attributesAreOld = true
            return true
        }
        if !isPutOff { notices.push(.attributes(node: node.id)) }
    }

    /// Fetches the whole content, then goes on; fails the request with what the host says.
    func withWholeContent(_ request: Request, _ node: Node, then: @escaping @Sendable () -> Void) {
        request.attempt { () throws(Errno) in
            guard host.mayMaterialize(threadID: request.thread) else { throw .noAttribute }
            guard let file = try placeholderFile(of: node) else { return then() }
            deferrals.wait(
                request,
                begin: { completion in
                    host.needContent(file, range: 0..<file.placeholder.size) {
                        completion($0.map { .failure($0) } ?? .success(()))
                    }
                },
                nothing: (),
                resume: { [self] result in
                    request.attempt { () throws(Errno) in
                        try result.get()
                        try becomeWhole(node, file)
                        then()
                    }
                }
            )
        }
    }

    /// All ranges are present: the placeholder goes. Finishing twice does no harm.
    private func becomeWhole(_ node: Node, _ file: PlaceholderFile) throws(Errno) {
        guard !file.isDiscarded else { return }
        _ = try file.finish()
        try noteWhole(node, wasFilled: true)
    }

    /// O_TRUNC and truncation to nothing of a dataless file: nothing of it is fetched, and what is under way ends.
    func discardContent(of node: Node) throws(Errno) {
        guard let file = try placeholderFile(of: node) else { return }
        file.discard()
        try PlaceholderOperations.truncate(file.descriptor)
        try noteWhole(node)
    }

    /// Times or mode of a dataless file. False if it is whole now, so that they are set as on any file.
    @discardableResult
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
        host.closed(path: path(of: node) ?? .root, key: node.key)
    }
}
