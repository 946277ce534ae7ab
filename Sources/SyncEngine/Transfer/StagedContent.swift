import CLinux
import Glibc
import Replica
import SystemPackage
import UbiquityModel

/// A file in the staging folder that is being filled with a revision's content.
///
/// `REVISION.part` survives a restart: what it holds is verified again by hashing, chunk by chunk, and not fetched twice.
final class StagedContent: ContentDestination {
    let name: String
    private let file: OwnedDescriptor

    init(_ staged: consuming StagedFile) {
        name = staged.name
        file = staged.takeDescriptor()
    }

    init(name: String, _ file: consuming OwnedDescriptor) {
        self.name = name
        self.file = file
    }

    var descriptor: Int32 { file.raw }

    /// In bytes, holes included.
    func size() throws(Errno) -> Int64 {
        var status = stat()
        guard fstat(file.raw, &status) == 0 else { throw Errno(rawValue: errno) }
        return Int64(status.st_size)
    }

    /// Bytes that it takes on the disk.
    func allocated() throws(Errno) -> Int64 {
        var status = stat()
        guard fstat(file.raw, &status) == 0 else { throw Errno(rawValue: errno) }
        return Int64(status.st_blocks) * 512
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) {
        try checked(clinux_pwrite_or_punch(file.raw, bytes.baseAddress, bytes.count, offset))
    }

    /// Returns how many bytes there were, at most the buffer's size.
    static func read(
        _ descriptor: Int32,
        into buffer: UnsafeMutableRawBufferPointer,
        at offset: Int64
    ) throws(Errno) -> Int {
        try checked(clinux_pread(descriptor, buffer.baseAddress, buffer.count, offset))
    }

    /// After the disk was synced: whoever did that need not have been told what it could not write of this.
    func waitWritten() throws(Errno) { try checked(clinux_wait_written(file.raw)) }

    /// Sets what the item has besides its content and makes all of it durable.
    func complete(size: Int64, attributes: ItemAttributes) throws(Errno) {
        try checked(clinux_truncate(file.raw, size))
        try checked(clinux_fsync(file.raw))
        try set(attributes)
        try checked(clinux_fsync(file.raw))
    }

    /// Gives it other attributes after it was complete, and makes them durable.
    func change(_ attributes: ItemAttributes) throws(Errno) {
        // It may be one by now that nobody may write to, which holds for attributes as well.
        guard fchmod(file.raw, 0o600) == 0 else { throw Errno(rawValue: errno) }
        try set(attributes)
        try checked(clinux_fsync(file.raw))
    }

    /// What the item has besides its content, on a file that had nothing of that. Whoever does so for many syncs the disk once.
    func set(_ attributes: ItemAttributes) throws(Errno) {
        _ = try ExtendedAttributes.replaceSynced(file.raw, with: attributes.extended)
        try InodeMode.set(file.raw, attributes.mode, .file)
        try setModified(file.raw, attributes.modified)
    }
}
