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
    }

    /// Cuts the content into chunks and emits each, then compares size and times with those before.
    /// - Parameters:
    ///   - synchronizing: for a file that somebody has open for writing: writes it to the disk first, so that a later store through a
    ///     mapping moves its time, without which a change in the middle would not be seen.
    ///   - emit: gets each chunk; the buffer is valid only during the call. What it throws ends the reading (`.stopped`).
    package static func read(
        _ descriptor: Int32,
        key: ContainerKey,
        synchronizing: Bool,
        emit: (ChunkID, UnsafeRawBufferPointer) throws -> Void
    ) throws(ContentReadError) -> Reading {
        let before = try starting(descriptor, synchronizing: synchronizing)
        var chunker = Chunker(key: key)
        // One byte more than it has tells that it has grown; of a small file not much more, since a large buffer is mapped anew each time.
        let room = Int(min(Int64(bufferSize), before.size + 1))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 4096)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < before.size {
            let count = try naming { () throws(Errno) in
                try checked(clinux_pread(descriptor, buffer.baseAddress, buffer.count, offset))
            }
            // Shorter than it was, or longer.
            if count == 0 || offset + Int64(count) > before.size { throw .changed }
            offset += Int64(count)
            do { try chunker.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]), emit: emit) } catch {
                throw .stopped(error)
            }
        }
        let result: (manifest: Manifest, content: ContentID)
        do { result = try chunker.finish(emit: emit) } catch { throw .stopped(error) }
        let after = try naming { () throws(Errno) in try BackingTree.observe(descriptor: descriptor) }
        guard after.size == before.size, after.modified == before.modified, after.changed == before.changed else {
            throw .changed
        }
        return Reading(manifest: result.manifest, content: result.content, state: after)
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
