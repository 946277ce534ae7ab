import Logging
package import Replica
import Synchronization
package import SystemPackage
package import UbiquityModel

/// What the engine does to the mount. Everything may be called on any thread; nothing waits for the mount.
extension Mount {
    /// Carries a mutation out on an apply thread, where `completion` runs too. Mutations are begun in the order of the calls, several at a
    /// time: what depends on another is submitted after that one's completion.
    package func apply(
        _ mutation: Mutation,
        completion: @escaping @Sendable (Result<MutationResult, MutationFailure>) -> Void
    ) {
        submit(completion) { filesystem, acting in filesystem.perform(mutation, acting) }
    }

    /// Several, one after the other on one apply thread; an answer for each.
    package func apply(
        _ mutations: [Mutation],
        completion: @escaping @Sendable ([Result<MutationResult, MutationFailure>]) -> Void
    ) {
        let refused = Result<MutationResult, MutationFailure>.failure(.system(.notConnected))
        guard let filesystem else { return completion(mutations.map { _ in refused }) }
        let isTaken = filesystem.applier.submit { acting in completion(filesystem.perform(mutations, acting)) }
        if !isTaken { completion(mutations.map { _ in refused }) }
    }

    /// Frees the content of a file, whole or partly here. `.busy` while anybody has it open, `.stale` if it is not as expected, EMLINK if it has several
    /// names. The caller made sure that the cloud has the revision.
    package func evict(
        in parent: InodeKey,
        _ name: Name,
        expecting evidence: LocalEvidence,
        as placeholder: Placeholder,
        completion: @escaping @Sendable (Result<MutationResult, MutationFailure>) -> Void
    ) {
        submit(completion) { filesystem, _ in
            do throws(MutationFailure) {
                return .success(try filesystem.eviction(parent, name, evidence, placeholder))
            } catch {
                return .failure(error)
            }
        }
    }

    private func submit(
        _ completion: @escaping @Sendable (Result<MutationResult, MutationFailure>) -> Void,
        _ act: @escaping @Sendable (Filesystem, Acting) -> Result<MutationResult, MutationFailure>
    ) {
        guard let filesystem else { return completion(.failure(.system(.notConnected))) }
        let isTaken = filesystem.applier.submit { acting in completion(act(filesystem, acting)) }
        if !isTaken { completion(.failure(.system(.notConnected))) }
    }

    /// After `PlaceholderFile.finish`: later opens are ordinary, and the kernel asks for the attributes again.
    package func becameWhole(_ key: InodeKey) {
        guard let filesystem else { return }
        filesystem.table.advanceEpoch()
        guard let node = filesystem.table.node(key) else { return }
        do throws(Errno) {
            try filesystem.noteWhole(node, wasFilled: true)
        } catch {
            // The next open finds out by itself.
            filesystem.logger.debug("cannot look at a file that became whole", metadata: ["why": "\(error)"])
        }
    }

    /// What the kernel shows of an item may be old. (The virtual attributes are asked for each time anyway.)
    package func itemStateChanged(_ key: InodeKey) {
        guard let filesystem, let node = filesystem.table.node(key) else { return }
        filesystem.notices.push(.attributes(node: node.id))
    }

    /// An item was made in the backing tree where the kernel may remember that there is none.
    package func nameAppeared(in folder: InodeKey, _ name: Name) {
        guard let filesystem else { return }
        filesystem.foldedNames?.came(name, in: folder)
        guard let node = filesystem.table.node(folder) else { return }
        filesystem.table.advanceEpoch()
        filesystem.notices.push(.entry(folder: node.id, name: name))
    }

    /// There is more in a folder than a listing has that the kernel may keep.
    package func listingChanged(_ folder: InodeKey) {
        guard let filesystem, let node = filesystem.table.node(folder) else { return }
        filesystem.notices.push(.listing(folder: node.id))
    }

    /// Whether the kernel knows an inode, so that somebody may watch it.
    package func knows(_ key: InodeKey) -> Bool { filesystem?.table.isKnown(key) ?? false }

    /// Takes the mark that a file was written to. Call it before reading the file: what is written later is reported again.
    /// - Returns: whether it was marked.
    @discardableResult
    package func collectDirty(_ key: InodeKey) -> Bool {
        guard let node = filesystem?.table.node(key) else { return false }
        return node.state.withLock { state in
            defer { state.isDirty = false }
            return state.isDirty
        }
    }

    /// From now on every lookup, open and listing by a program is EACCES, until the mount ends, and so is what waits. What programs have
    /// open stays good. What the engine has begun through the mount it can finish.
    package func closeToPrograms() { filesystem?.closeToPrograms() }

    /// Whether nobody may wait: those who do get EINTR, those who would EAGAIN.
    package func setImpatient(_ isImpatient: Bool) { filesystem?.deferrals.setImpatient(isImpatient) }

    /// The object that the handles of a dataless inode stream from, while there is one.
    package func openPlaceholder(_ key: InodeKey) -> PlaceholderFile? { filesystem?.placeholders.file(key) }

    /// The object that fills a dataless file, the same for all who fill and read it; `nil` if there is none of that revision, or it is
    /// whole.
    /// - Parameter folder: of the backing tree.
    package func placeholder(
        in folder: Int32,
        _ name: Name,
        _ revision: RevisionID
    ) throws(Errno) -> PlaceholderFile? {
        guard let filesystem else { return nil }
        let path: OwnedDescriptor
        do throws(Errno) {
            path = OwnedDescriptor(try filesystem.replica.tree.openPath(in: folder, name))
        } catch .noSuchFileOrDirectory {
            return nil
        }
        let key = try InodeKey(descriptor: path.raw)
        guard let file = try filesystem.placeholderFile(path.raw, key), file.placeholder.revision == revision else {
            return nil
        }
        // It says so already, and its old content is still to be given up: that would take what is filled in with it.
        if filesystem.table.node(key)?.isHeld ?? false { return nil }
        return file
    }

    /// Who knows something in the staging folder lets go of it: it was removed behind the mount.
    package func removed(staged name: String) {
        guard let filesystem, let name = try? Name(name) else { return }
        filesystem.notices.push(.entry(folder: NodeTable.stagingID, name: name))
    }
}
