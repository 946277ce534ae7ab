internal import CLinux
package import Chunking
internal import Glibc
package import SystemPackage
package import UbiquityModel

/// Reads a whole package for sending, and makes sure that what was read is one state of it.
package enum PackageReader {
    /// What of a package is not on this disk.
    package struct Elsewhere {
        /// Of a file whose content is not here: the chunks of it, which the cloud has. Throws what ends the reading.
        let chunks: (Placeholder) throws -> [Manifest.Entry]
        /// The index that was agreed on, if it is needed: it has the attributes for which this disk has no room.
        let agreed: PackageIndex?

        package init(agreed: PackageIndex? = nil, chunks: @escaping (Placeholder) throws -> [Manifest.Entry]) {
            self.chunks = chunks
            self.agreed = agreed
        }
    }

    /// Cuts the index, and then each file by itself, so that a file that did not change is made of the chunks that it was made of.
    /// - Parameters:
    ///   - folder: open for reading.
    ///   - expected: the package as it was looked at: `.changed` if it is not that any more.
    ///   - synchronizing: writes to the disk first what programs have written through mappings, of files that are open.
    ///   - emit: gets each chunk that is read here; the buffer is valid only during the call.
    package static func read(
        _ folder: Int32,
        expecting expected: LocalState,
        key: ContainerKey,
        synchronizing: Bool,
        dataless: Elsewhere,
        emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) throws(ContentReadError) -> ContentReader.Reading {
        let before = try walk(folder)
        guard LocalEvidence(before.state) == LocalEvidence(expected) else { throw .changed }
        var manifest = Manifest()
        let sent: PackageIndex
        do {
            guard let index = before.index(completedBy: dataless.agreed) else {
                try RefusedAttributes.forget(folder: folder)
                throw ContentReadError.changed
            }
            guard index.isReadable else { throw ContentReadError.system(.fileNameTooLong) }
            sent = index
            var chunker = Chunker(key: key)
            try index.encoded.withUnsafeBytes { try chunker.append($0, emit: emit) }
            manifest = try chunker.finish(emit: emit).manifest
            for entry in before.entries where entry.state.kind == .file && entry.state.size > 0 {
                if let placeholder = entry.state.placeholder {
                    let chunks = try dataless.chunks(placeholder)
                    guard Manifest(entries: chunks).size == placeholder.size else { throw ContentReadError.changed }
                    manifest.entries += chunks
                } else {
                    manifest.entries += try read(entry, in: folder, key, synchronizing, emit)
                }
            }
        } catch let error as ContentReadError {
            throw error
        } catch let error as Errno {
            throw error == .noSuchFileOrDirectory || error == .stale ? .changed : .system(error)
        } catch {
            throw .stopped(error)
        }
        // What was read first may have been changed while the rest was read.
        let after = try walk(folder)
        guard LocalEvidence(after.state) == LocalEvidence(before.state), after.index == before.index else {
            throw .changed
        }
        return ContentReader.Reading(
            manifest: manifest,
            content: contentID(of: manifest, key: key),
            state: after.state,
            index: sent
        )
    }

    /// Whether the index that was agreed on may be needed.
    package static func mayLackAttributes(folder: Int32) throws(Errno) -> Bool {
        try !RefusedAttributes(folder: folder).isEmpty
    }

    private static func walk(_ folder: Int32) throws(ContentReadError) -> PackageTree {
        do throws(Errno) { return try PackageTree(folder: folder) } catch {
            // The folder itself may have gone.
            throw error == .stale || error == .noSuchFileOrDirectory ? .changed : .system(error)
        }
    }

    private static func read(
        _ entry: PackageTree.Entry,
        in folder: Int32,
        _ key: ContainerKey,
        _ synchronizing: Bool,
        _ emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) throws -> [Manifest.Entry] {
        let file = try PackageFolder.open(entry.element.path, in: folder, flags: O_RDONLY)
        guard try InodeKey(descriptor: file.raw) == entry.state.key else { throw ContentReadError.changed }
        let reading = try ContentReader.read(
            file.raw,
            expecting: entry.state.key,
            key: key,
            synchronizing: synchronizing,
            emit: emit
        )
        guard reading.state.size == entry.state.size, reading.state.modified == entry.state.modified else {
            throw ContentReadError.changed
        }
        return reading.manifest.entries
    }
}

/// Paths in a package's folder: no name on the way is followed if it is a link.
package enum PackageFolder {
    /// Opens what a path leads to. ENOENT, ENOTDIR or ELOOP if it does not lead there.
    package static func open(_ path: ItemPath, in folder: Int32, flags: Int32) throws(Errno) -> OwnedDescriptor {
        guard let last = path.last else { return try OwnedDescriptor(in: folder, ".", flags: flags) }
        guard !path.parent.isRoot else { return try open(last, in: folder, flags) }
        let parent = try open(path.parent, in: folder, flags: Int32(CLINUX_O_PATH) | O_DIRECTORY)
        return try open(last, in: parent.raw, flags)
    }

    /// Whether a program has a file open for writing, or mapped, by whatever way: the disk is asked. What the disk cannot tell it cannot
    /// tell of any file, and then this is false.
    package static func isWritten(_ path: ItemPath, in folder: Int32) -> Bool {
        // The signal by which the kernel tells that a lease is broken would end the process.
        guard clinux_ignore_leases() == 0, let file = try? open(path, in: folder, flags: O_RDONLY) else { return false }
        return clinux_check_unused(file.raw, 0) == -EAGAIN
    }

    private static func open(_ name: Name, in folder: Int32, _ flags: Int32) throws(Errno) -> OwnedDescriptor {
        try OwnedDescriptor(in: folder, name, flags: flags | O_NONBLOCK)
    }
}
