internal import CLinux
internal import Glibc
package import SystemPackage
package import UbiquityModel

/// What is done to inodes that are, become or cease to be dataless.
///
/// A crash between any two steps leaves a placeholder (with its attribute: to be filled again), never a file of zeros.
package enum PlaceholderOperations {
    /// `nil` for a whole file. Throws `.unreadablePlaceholder` if there is one of a newer format, or a damaged one.
    package static func read(_ descriptor: Int32) throws(Errno) -> Placeholder? {
        guard let bytes = try ExtendedAttributes.get(descriptor, ExtendedAttributes.placeholder) else { return nil }
        guard let placeholder = Placeholder(encoded: bytes) else { throw .unreadablePlaceholder }
        return placeholder
    }

    /// Makes a new dataless file. Nothing is synced: the caller syncs a batch, or the file comes back by the next scan.
    /// - Returns: its state, and the extended attributes for which the disk has no room.
    package static func create(
        in directory: Int32,
        name: UnsafePointer<CChar>,
        _ placeholder: Placeholder,
        extended: [[UInt8]: [UInt8]] = [:]
    ) throws(Errno) -> (state: LocalState, refused: [[UInt8]]) {
        let file = try OwnedDescriptor(in: directory, name, flags: O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
        do throws(Errno) {
            // The placeholder first: it must fit, the others need not.
            try write(placeholder, to: file.raw)
            let refused = extended.isEmpty ? [] : try ExtendedAttributes.replaceSynced(file.raw, with: extended)
            try checked(clinux_truncate(file.raw, placeholder.size))
            try checked(clinux_chmod(file.raw, UInt32(InodeMode.backing(placeholder.mode, .file))))
            try setModified(file.raw, placeholder.modified)
            return (try BackingTree.observe(descriptor: file.raw), refused)
        } catch {
            _ = unlinkat(directory, name, 0)
            throw error
        }
    }

    /// Gives up the content of a whole file that the cloud has: attribute, fsync, punch, modification time. Should the last two be lost,
    /// it is dataless all the same: what the disk has of it is not believed.
    ///
    /// The caller made sure that nobody has it open and that it is unchanged. If the attribute does not fit, nothing is
    /// done.
    package static func evict(_ descriptor: Int32, as placeholder: Placeholder) throws(Errno) -> LocalState {
        try write(placeholder, to: descriptor)
        try checked(clinux_fsync(descriptor))
        try punch(descriptor, size: placeholder.size)
        try setModified(descriptor, placeholder.modified)
        return try BackingTree.observe(descriptor: descriptor)
    }

    /// O_TRUNC and truncation to 0 of a dataless file: a new generation, so that a crash before the end leaves a placeholder of which
    /// nothing is believed to be here; then the truncation, then the attribute's removal. It is then an ordinary, changed file.
    package static func truncate(_ descriptor: Int32) throws(Errno) {
        let placeholder = try read(descriptor)
        if var renewed = placeholder {
            renewed.generation = .random(in: .min ... .max)
            try write(renewed, to: descriptor)
        }
        try checked(clinux_truncate(descriptor, 0))
        if let placeholder { try restoreMode(descriptor, placeholder.mode) }
        try ExtendedAttributes.remove(descriptor, ExtendedAttributes.placeholder)
    }

    /// Times and mode of a dataless file that a program, or another device, sets. Returns the placeholder as it is
    /// then.
    package static func setAttributes(
        _ descriptor: Int32,
        modified: Timestamp?,
        mode: UInt16?
    ) throws(Errno) -> Placeholder {
        guard var placeholder = try read(descriptor) else { throw .noAttribute }
        if let modified { placeholder.modified = modified }
        if let mode { placeholder.mode = mode & 0o777 }
        try write(placeholder, to: descriptor)
        if let mode {
            let special = UInt16(try status(of: descriptor).mode & 0o7000)
            try checked(clinux_chmod(descriptor, UInt32(InodeMode.backing(special | (mode & 0o777), .file))))
        }
        try setModified(descriptor, placeholder.modified)
        return placeholder
    }

    /// Puts a dataless inode's own size and time right, after a crash in the middle of an eviction or of filling.
    /// - Returns: whether anything was wrong.
    package static func repair(_ descriptor: Int32) throws(Errno) -> Bool {
        guard let placeholder = try read(descriptor) else { return false }
        let status = try status(of: descriptor)
        let modified = Timestamp(seconds: status.modified_seconds, nanoseconds: status.modified_nanoseconds)
        guard status.size != placeholder.size || modified != placeholder.modified else { return false }
        if status.size != placeholder.size { try checked(clinux_truncate(descriptor, placeholder.size)) }
        try setModified(descriptor, placeholder.modified)
        return true
    }

    package static func write(_ placeholder: Placeholder, to descriptor: Int32) throws(Errno) {
        try ExtendedAttributes.set(descriptor, ExtendedAttributes.placeholder, placeholder.encoded)
    }

    /// The steps that make a filled inode whole: fsync, time, mode, and the attribute last.
    /// - Parameter isDurable: the bytes were synced before.
    static func complete(_ descriptor: Int32, _ placeholder: Placeholder, isDurable: Bool = false) throws(Errno) {
        // One whose content has another size than it was announced with.
        let isOfOtherSize = try status(of: descriptor).size != placeholder.size
        if isOfOtherSize { try checked(clinux_truncate(descriptor, placeholder.size)) }
        if !isDurable || isOfOtherSize {
            try checked(clinux_fsync(descriptor))
        } else {
            // Whoever synced the disk may not have been told what it could not write: one of all who do so is.
            try checked(clinux_wait_written(descriptor))
        }
        try setModified(descriptor, placeholder.modified)
        try restoreMode(descriptor, placeholder.mode)
        try ExtendedAttributes.remove(descriptor, ExtendedAttributes.placeholder)
    }

    /// Frees the blocks and keeps the size.
    package static func punch(_ descriptor: Int32, size: Int64) throws(Errno) {
        if size > 0 {
            let flags = Int32(CLINUX_FALLOC_PUNCH_HOLE | CLINUX_FALLOC_KEEP_SIZE)
            do throws(Errno) {
                try checked(clinux_fallocate(descriptor, flags, 0, size))
                return
            } catch .notSupported {
                // A filesystem without holes punched: truncating frees as well.
            }
        }
        try checked(clinux_truncate(descriptor, 0))
        try checked(clinux_truncate(descriptor, size))
    }

    /// The true permission bits, keeping what is not synced (setuid, setgid, sticky).
    private static func restoreMode(_ descriptor: Int32, _ mode: UInt16) throws(Errno) {
        let special = UInt16(try status(of: descriptor).mode & 0o7000)
        try InodeMode.set(descriptor, special | mode, .file)
    }
}

extension Errno {
    /// EPROTO: a placeholder's attribute that this version cannot read. The file is neither served nor sent.
    package static var unreadablePlaceholder: Errno { Errno(rawValue: Glibc.EPROTO) }
}
