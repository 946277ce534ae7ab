internal import CLinux
package import Chunking
package import SystemPackage
package import UbiquityModel

/// Reads a whole file for sending, and makes sure that what was read is one state of it.
package enum ContentReader {
    private static let bufferSize = 1 << 20

    package struct Reading: Sendable, Hashable {
        package var manifest: Manifest
        package var content: ContentID
        /// The file as it was, before and after.
        package var state: LocalState
        /// What a package is made of; `nil` of a file.
        package var index: PackageIndex?
    }

    /// Cuts the content into chunks and emits each, then compares size and times with those before.
    /// - Parameters:
    ///   - expected: another inode is `.changed`; `nil`: whichever it is.
    ///   - limit: in bytes; a larger file is `.changed`.
    ///   - synchronizing: for a file that somebody has open for writing: writes it to the disk first, so that a later store through a
    ///     mapping moves its time, without which a change in the middle would not be seen.
    ///   - former: of a content that it may have much in common with: where it has, nothing is searched. For large files only.
    ///   - beside: has something done by another thread, which must not wait for this one: chunks are named there while the next are
    ///     read. Worth it for large files only.
    ///   - emit: gets each chunk; the buffer is valid only during the call. What it throws ends the reading (`.stopped`).
    package static func read(
        _ descriptor: Int32,
        expecting expected: InodeKey? = nil,
        upTo limit: Int64 = .max,
        key: ContainerKey,
        synchronizing: Bool,
        former: Manifest? = nil,
        beside: ((@escaping @Sendable () -> Void) -> Void)? = nil,
        emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) throws(ContentReadError) -> Reading {
        let before = try starting(descriptor, synchronizing: synchronizing)
        if let expected, before.key != expected { throw .changed }
        if before.size > limit { throw .changed }
        let result: (manifest: Manifest, content: ContentID)
        do {
            result =
                if let beside, let former, !former.entries.isEmpty {
                    try cut(descriptor, before, key, former, beside, emit)
                } else if let beside {
                    try cut(descriptor, before, ParallelChunker(key: key, submit: beside), emit)
                } else {
                    try cut(descriptor, before, Chunker(key: key), emit)
                }
        } catch let error as ContentReadError {
            throw error
        } catch {
            throw .stopped(error)
        }
        let after = try naming { () throws(Errno) in try status(of: descriptor) }
        // Whatever else it has cannot change without its change time.
        guard after.size == before.size,
            before.modified == Timestamp(seconds: after.modified_seconds, nanoseconds: after.modified_nanoseconds),
            before.changed == Timestamp(seconds: after.changed_seconds, nanoseconds: after.changed_nanoseconds)
        else { throw .changed }
        return Reading(manifest: result.manifest, content: result.content, state: before)
    }

    private static func cut(
        _ descriptor: Int32,
        _ state: LocalState,
        _ chunker: consuming Chunker,
        _ emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) throws -> (manifest: Manifest, content: ContentID) {
        // One byte more than it has tells that it has grown; of a small file not much more, since a large buffer is mapped anew each time.
        let room = Int(min(Int64(bufferSize), state.size + 1))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 4096)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < state.size {
            let count = try piece(descriptor, state, at: offset, into: buffer)
            offset += Int64(count)
            try chunker.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]), emit: emit)
        }
        return try chunker.finish(emit: emit)
    }

    private static func cut(
        _ descriptor: Int32,
        _ state: LocalState,
        _ chunker: consuming ParallelChunker,
        _ emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) throws -> (manifest: Manifest, content: ContentID) {
        var offset: Int64 = 0
        while offset < state.size {
            let read = { room in try piece(descriptor, state, at: offset, into: room) }
            offset += Int64(try chunker.append(read: read, emit: emit))
        }
        return try chunker.finish(emit: emit)
    }

    private static func cut(
        _ descriptor: Int32,
        _ state: LocalState,
        _ key: ContainerKey,
        _ former: Manifest,
        _ beside: @escaping (@escaping @Sendable () -> Void) -> Void,
        _ emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) throws -> (manifest: Manifest, content: ContentID) {
        var chunker = GuidedChunker(key: key, former: former, size: state.size, submit: beside) { room, offset in
            Int(clinux_pread(descriptor, room.baseAddress, room.count, offset))
        }
        do { return try chunker.cut(emit: emit) } catch let failure as GuidedChunker.Failure {
            switch failure {
            case .ended: throw ContentReadError.changed
            case .system(let number): throw ContentReadError.system(Errno(rawValue: number))
            }
        }
    }

    private static func piece(
        _ descriptor: Int32,
        _ state: LocalState,
        at offset: Int64,
        into room: UnsafeMutableRawBufferPointer
    ) throws(ContentReadError) -> Int {
        let count = try naming { () throws(Errno) in
            try checked(clinux_pread(descriptor, room.baseAddress, room.count, offset))
        }
        // Shorter than it was, or longer.
        if count == 0 || offset + Int64(count) > state.size { throw .changed }
        return count
    }

    private static func starting(_ descriptor: Int32, synchronizing: Bool) throws(ContentReadError) -> LocalState {
        let state = try naming { () throws(Errno) in
            if synchronizing { try checked(clinux_fdatasync(descriptor)) }
            return try BackingTree.observe(descriptor: descriptor)
        }
        guard state.kind == .file, !state.isDataless else { throw .notWhole }
        return state
    }

    private static func naming<Result>(_ body: () throws(Errno) -> Result) throws(ContentReadError) -> Result {
        do throws(Errno) { return try body() } catch { throw .system(error) }
    }
}

package enum ContentReadError: Error {
    /// Somebody wrote meanwhile: what was emitted is of no use, read again later.
    case changed
    /// Dataless, or not a regular file: there is nothing to send.
    case notWhole
    case system(Errno)
    /// `emit` threw this.
    case stopped(any Error)
}
