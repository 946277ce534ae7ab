internal import CLinux
internal import Glibc
package import SystemPackage
package import UbiquityModel

/// A folder beside the tree, on the same filesystem, in which items are prepared before one rename publishes them.
///
/// Everything in it is disposable at start, except partly downloaded contents (`REVISION.part`) and old states of packages in which programs
/// may have written (`NAME` with `NAME.replaced`).
package final class Staging: Sendable {
    package let path: String
    private let folder: OwnedDescriptor

    package init(path: String) throws(Errno) {
        self.path = path
        folder = OwnedDescriptor(try checked(clinux_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0)))
    }

    /// As long as this object lives.
    package var descriptor: Int32 { folder.raw }

    /// An empty file, open for reading and writing, mode 0600.
    package func makeFile() throws(Errno) -> StagedFile {
        let name = Self.freshName()
        return StagedFile(
            name: name,
            descriptor: try OwnedDescriptor(in: folder.raw, name, flags: O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
        )
    }

    /// A dataless file.
    package func makePlaceholder(
        _ placeholder: Placeholder,
        extended: [[UInt8]: [UInt8]] = [:]
    ) throws(Errno) -> (name: String, state: LocalState, refused: [[UInt8]]) {
        let name = Self.freshName()
        let made = try PlaceholderOperations.create(in: folder.raw, name: name, placeholder, extended: extended)
        return (name, made.state, made.refused)
    }

    /// An empty folder with a true mode.
    package func makeFolder(mode: UInt16 = 0o755) throws(Errno) -> String {
        let name = Self.freshName()
        try called(mkdirat(folder.raw, name, 0o700))
        let made = try open(name, flags: O_RDONLY | O_DIRECTORY)
        try InodeMode.set(made.raw, mode & 0o777, .folder)
        return name
    }

    package func makeSymlink(target: [UInt8]) throws(Errno) -> String {
        let name = Self.freshName()
        try called(symlinkat(target.map { CChar(bitPattern: $0) } + [0], folder.raw, name))
        return name
    }

    /// Opens what was staged: never follows a link.
    package func open(_ name: String, flags: Int32) throws(Errno) -> OwnedDescriptor {
        try OwnedDescriptor(in: folder.raw, name, flags: flags)
    }

    /// False only when it is certain that nothing is there: published, removed, or never staged.
    package func has(_ name: String) -> Bool {
        faccessat(folder.raw, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT
    }

    package func observe(_ name: String) throws(Errno) -> LocalState {
        let item = try open(name, flags: Int32(CLINUX_O_PATH))
        return try BackingTree.observe(descriptor: item.raw)
    }

    /// The partly downloaded content of a revision, made if there is none, open for reading and writing.
    package func partFile(_ revision: RevisionID) throws(Errno) -> StagedFile {
        let name = Self.partName(revision)
        return StagedFile(
            name: name,
            descriptor: try OwnedDescriptor(in: folder.raw, name, flags: O_RDWR | O_CREAT, mode: 0o600)
        )
    }

    /// Of which revisions partly downloaded contents lie here.
    package func parts() throws(Errno) -> [RevisionID] {
        try folderNames(folder.raw).compactMap { Self.revision(ofPart: $0) }
    }

    /// What there is of a partly downloaded content is of no use, or its room is wanted.
    package func removePart(_ revision: RevisionID) throws(Errno) { try remove(Self.partName(revision)) }

    /// Removes a file, link or whole folder; one that is not there is no error.
    package func remove(_ name: String) throws(Errno) {
        guard let name = try? Name(name) else { throw .invalidArgument }
        try Self.remove(name, in: folder.raw)
    }

    /// Removes everything but partly downloaded contents and replaced packages.
    package func clean() throws(Errno) {
        let names = try folderNames(folder.raw)
        let kept = replacedPackages(among: names)
        for name in names where Self.revision(ofPart: name) == nil && !kept.contains(name) {
            try Self.remove(name, in: folder.raw)
        }
    }

    private static func remove(_ name: Name, in directory: Int32) throws(Errno) {
        try name.withCString { path throws(Errno) in
            if unlinkat(directory, path, 0) == 0 { return }
            switch errno {
            case ENOENT: return
            case EISDIR: break
            case let error: throw Errno(rawValue: error)
            }
            try empty(OwnedDescriptor(in: directory, path, flags: O_RDONLY | O_DIRECTORY))
            try called(unlinkat(directory, path, AT_REMOVEDIR))
        }
    }

    private static func empty(_ folder: consuming OwnedDescriptor) throws(Errno) {
        for name in try folderNames(folder.raw) { try remove(name, in: folder.raw) }
    }

    private static func revision(ofPart name: Name) -> RevisionID? {
        let text = name.description
        return text.hasSuffix(".part") ? RevisionID(String(text.dropLast(5))) : nil
    }

    private static func partName(_ revision: RevisionID) -> String { "\(revision).part" }

    /// 64 random bits: nobody guesses it, and it never meets another one.
    package static func freshName() -> String {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

/// A file in the staging folder.
package struct StagedFile: ~Copyable, Sendable {
    package let name: String
    package let descriptor: OwnedDescriptor

    /// Gives the descriptor away.
    package consuming func takeDescriptor() -> OwnedDescriptor { descriptor }
}
