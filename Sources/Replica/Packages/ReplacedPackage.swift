internal import CLinux
internal import Glibc
package import SystemPackage
package import UbiquityModel

/// The old state of a package that the engine has replaced or removed, in the staging folder. Programs that walked in before may go on there;
/// by what is recorded of it whoever looks, in a later process too, tells what they wrote from what the cloud has.
package struct ReplacedPackage: Sendable {
    /// A file in it whose content is nowhere else.
    package struct Written: Sendable {
        package let path: ItemPath
        package let state: LocalState
    }

    /// The folder in which the package was.
    package let parent: InodeKey
    package let files: [InodeKey]
    package let written: [Written]
    /// Whether a program has a file in it open for writing, or mapped.
    package let isInUse: Bool
}

/// Beside the folder `NAME` lies `NAME.replaced`: "UBQR" and a version (4 bytes, big-endian), the key of the package's folder and that of the
/// folder in which it was (32 bytes each), the number of its files (4 bytes), and for each a mark of 8 bytes. Marks of what has been kept
/// since are appended; a torn one at the end says nothing.
///
/// It is on the disk before the package is exchanged, and the folder's key says whether that has happened: a record that cannot be read is
/// of an exchange that was not begun.
private struct ReplacedRecord {
    static let magic = Array("UBQR".utf8)
    static let version: UInt32 = 1
    static let suffix = ".replaced"

    let root: InodeKey
    let parent: InodeKey
    var marks: Set<UInt64>

    static func staged(_ name: Name) -> String? {
        let text = name.description
        return text.hasSuffix(suffix) ? String(text.dropLast(suffix.count)) : nil
    }

    static func encode(_ tree: PackageTree, parent: InodeKey) -> [UInt8] {
        var writer = ByteWriter()
        writer.bytes(magic)
        writer.integer(version)
        for key in [tree.state.key, parent] {
            writer.bytes(key.bytes + [UInt8](repeating: 0, count: 32 - key.bytes.count))
        }
        let files = tree.entries.filter { $0.state.kind == .file }
        writer.integer(UInt32(clamping: files.count))
        for file in files { writer.integer(mark(file.state)) }
        return writer.result
    }

    init?(_ bytes: [UInt8]) throws(Errno) {
        var reader = ByteReader(bytes)
        guard reader.bytes(4) == Self.magic, let version = reader.integer(UInt32.self) else { return nil }
        guard version <= Self.version else { throw .notSupported }
        guard let root = reader.bytes(32).flatMap({ InodeKey(bytes: $0) }),
            let parent = reader.bytes(32).flatMap({ InodeKey(bytes: $0) }),
            let count = reader.integer(UInt32.self)
        else { return nil }
        var marks = Set<UInt64>()
        var read: UInt32 = 0
        while let mark = reader.integer(UInt64.self) {
            marks.insert(mark)
            read = min(count, read + 1)
        }
        guard read == count else { return nil }
        self.root = root
        self.parent = parent
        self.marks = marks
    }

    /// Of a file's content, wherever in the package it lies: what filling or evicting it leaves as it is, and writing does not.
    static func mark(_ state: LocalState) -> UInt64 {
        var hash = StableHash()
        hash.add(state.key.bytes)
        hash.add(UInt64(bitPattern: state.size))
        hash.add(UInt64(bitPattern: state.modified.nanoseconds))
        return hash.value
    }
}

extension Staging {
    /// Before a package is exchanged for what is staged, or moved away to that name. Durable when it returns.
    package func note(replaced tree: PackageTree, as staged: String, from parent: InodeKey) throws(Errno) {
        let bytes = ReplacedRecord.encode(tree, parent: parent)
        let name = staged + ReplacedRecord.suffix
        let file = try OwnedDescriptor(in: descriptor, name, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
        do throws(Errno) {
            try write(bytes, to: file.raw)
            try checked(clinux_fsync(file.raw))
            try checked(clinux_fsync(descriptor))
        } catch {
            forget(replaced: staged)
            throw error
        }
    }

    /// The exchange did not happen, or the old state has gone.
    package func forget(replaced staged: String) { _ = unlinkat(descriptor, staged + ReplacedRecord.suffix, 0) }

    /// What was written to these files is elsewhere now as well.
    package func note(kept files: [LocalState], ofReplaced staged: String) throws(Errno) {
        let flags = O_WRONLY | O_APPEND
        let file = try OwnedDescriptor(in: descriptor, staged + ReplacedRecord.suffix, flags: flags)
        var writer = ByteWriter()
        for state in files { writer.integer(ReplacedRecord.mark(state)) }
        let size = try status(of: file.raw).size
        do throws(Errno) { try write(writer.result, to: file.raw) } catch {
            try checked(clinux_truncate(file.raw, size))
            throw error
        }
    }

    /// Whether something is recorded under this name: what lies there may be the only place of a program's bytes.
    package func mayHoldReplaced(_ staged: String) -> Bool {
        faccessat(descriptor, staged + ReplacedRecord.suffix, F_OK, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// All that lie here.
    package func replacedPackages() throws(Errno) -> [String] {
        try folderNames(descriptor).compactMap { name in
            guard let staged = ReplacedRecord.staged(name), (try? record(staged)) ?? nil != nil else { return nil }
            return staged
        }
    }

    /// These and their records. What a newer version has left is for that one to look after.
    func replacedPackages(among names: [Name]) -> Set<Name> {
        var found = Set<Name>()
        for name in names {
            guard let staged = ReplacedRecord.staged(name), let folder = try? Name(staged) else { continue }
            do throws(Errno) { if try record(staged) == nil { continue } } catch {}
            found.formUnion([name, folder])
        }
        return found
    }

    /// `nil` if no old state lies there. Blocks on the disk: some 30 µs for each element.
    package func replacedPackage(_ staged: String) throws(Errno) -> ReplacedPackage? {
        guard let record = try record(staged) else { return nil }
        let folder = try open(staged, flags: O_RDONLY | O_DIRECTORY)
        let tree = try PackageTree(folder: folder.raw)
        let files = tree.entries.filter { $0.state.kind == .file }
        let names = Dictionary(files.map { ($0.state.key, 1) }, uniquingKeysWith: +)
        let isInUse = files.contains { PackageFolder.isWritten($0.element.path, in: folder.raw) }
        return ReplacedPackage(
            parent: record.parent,
            files: files.map(\.state.key),
            written: files.compactMap { file in
                // What has a name elsewhere too is in the package's new state, or was linked by a program, and is sent from there.
                guard !file.state.isDataless, file.state.linkCount <= names[file.state.key] ?? 1,
                    !record.marks.contains(ReplacedRecord.mark(file.state))
                else { return nil }
                return ReplacedPackage.Written(path: file.element.path, state: file.state)
            },
            isInUse: isInUse
        )
    }

    /// `nil` if the folder is not the one of which it tells. ENOTSUP for a record of a newer version.
    private func record(_ staged: String) throws(Errno) -> ReplacedRecord? {
        let name = staged + ReplacedRecord.suffix
        do throws(Errno) {
            let file = try OwnedDescriptor(in: descriptor, name, flags: O_RDONLY)
            guard let record = try ReplacedRecord(contents(of: file.raw)) else { return nil }
            let folder = try open(staged, flags: Int32(CLINUX_O_PATH) | O_DIRECTORY)
            return try InodeKey(descriptor: folder.raw) == record.root ? record : nil
        } catch .noSuchFileOrDirectory {
            return nil
        }
    }

    private func write(_ bytes: [UInt8], to file: Int32) throws(Errno) {
        let written = bytes.withUnsafeBytes { clinux_write(file, $0.baseAddress, $0.count) }
        guard try checked(written) == bytes.count else { throw .noSpace }
    }
}
