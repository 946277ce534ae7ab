package import Replica
package import SystemPackage
package import UbiquityModel

/// What the driver asks of the service. Called on request threads: every method returns at once.
package protocol DriverHost: AnyObject, Sendable {
    /// After the backing tree has changed; not for what the engine itself does through `Mount.apply`.
    func changed(_ change: LocalChange)
    /// Around a move in the backing tree and the word about it: between the two it may be seen by who has not been told.
    func beginMove()
    func endMove()

    /// Content that a thread reads of a dataless file. Calls `completion` exactly once, on any thread, also inside this call: nil when the
    /// range can be read from the file, or the errno for the program (semantics section 12), ENODATA for one that may not fetch content.
    /// Its waiting is bounded by the host.
    /// - Parameter waitsForAuthor: false for O_NONBLOCK: what has not reached the cloud yet is EAGAIN at once.
    func needContent(
        _ file: PlaceholderFile,
        range: Range<Int64>,
        waitsForAuthor: Bool,
        threadID: Int32,
        completion: @escaping @Sendable (Errno?) -> Void
    ) -> ContentRequest
    /// What of a dataless inode is known to hold content already; asked when it is first opened.
    func presentRanges(of key: InodeKey, _ placeholder: Placeholder) -> ByteRangeSet
    /// The first handle on a dataless file, with who opened it, and its last one's end. Only for a program that may fetch content the
    /// rest follows by itself.
    func datalessOpened(_ file: PlaceholderFile, threadID: Int32)
    func datalessClosed(_ file: PlaceholderFile)

    /// Cheap; the next two are called only while it is true.
    var claimsExist: Bool { get }
    /// `nil`: go on at once. Else `completion` is called exactly once.
    /// - Parameter mayWait: false for O_NONBLOCK: EAGAIN where it would wait for an explicit claim of another party.
    func openWaits(
        path: ItemPath,
        forWriting: Bool,
        mayWait: Bool,
        threadID: Int32,
        completion: @escaping @Sendable (Errno?) -> Void
    ) -> ContentRequest?
    /// Create, unlink, rename, truncate: EBUSY.
    func entryChangeRefused(paths: [ItemPath], threadID: Int32) -> Bool
    /// A writable handle was released.
    func closed(key: InodeKey)
    /// A program has opened a file that was there, or released a handle on which it could only read. Cheap.
    func used(_ key: InodeKey)

    /// A virtual attribute; may be answered later, exactly once.
    func itemAttribute(
        _ name: ItemAttributeName,
        key: InodeKey,
        parent: InodeKey,
        itemName: Name,
        completion: @escaping @Sendable (Result<[UInt8], Errno>) -> Void
    )
    /// `user.ubiquity.control` was set: starts and returns. `nil`: accepted. EPERM for an eviction that is known to be refused for good.
    func control(_ verb: String, parent: InodeKey, name: Name) -> Errno?

    /// Whether names in this folder may stand for items that are only in the cloud (architecture section 3.4). Cheap; the others are
    /// called only while it is true.
    func isUnpopulated(_ folder: InodeKey) -> Bool
    /// `nil`: what lies in the folder is known. Else `completion` is called exactly once, when it is, or with the errno for the program.
    func listingWaits(folder: InodeKey, completion: @escaping @Sendable (Errno?) -> Void) -> ContentRequest?
    /// Whether what lies in the folder is known. Cheap.
    func isListed(_ folder: InodeKey) -> Bool
    /// Makes the cloud's item of that name be there, in the backing tree; blocks on the disk.
    /// - Returns: false if there is none.
    func populate(_ folder: InodeKey, _ name: Name) throws(Errno) -> Bool
    /// What is only in the cloud, by name.
    func cloudEntries(of folder: InodeKey) throws(Errno) -> [CloudEntry]
    func hasCloudEntries(_ folder: InodeKey) throws(Errno) -> Bool
    /// A name in this folder of something that is only in the cloud so far, and equal to this without its case. Asked before a program
    /// gives the folder a name, in a case-insensitive container only.
    func cloudName(like folded: FoldedName, in folder: InodeKey) throws(Errno) -> Name?

    /// What `.versions/PATH` shows; answered exactly once.
    func versions(of path: ItemPath, completion: @escaping @Sendable (Result<VersionListing, Errno>) -> Void)
    /// A read-only descriptor of the whole content for a thread, which the driver closes; answered exactly once. ENODATA for a program
    /// that may not fetch content. What is called off is fetched no further.
    func openVersion(
        path: ItemPath,
        revision: RevisionID,
        threadID: Int32,
        completion: @escaping @Sendable (Result<Int32, Errno>) -> Void
    ) -> ContentRequest
    /// What a version of a package is made of; answered exactly once.
    func packageIndex(of version: ItemVersion, completion: @escaping @Sendable (Result<PackageIndex, Errno>) -> Void)
    /// As `openVersion`, of a file in a version of a package.
    /// - Parameter part: which of the bytes of the version's content it is.
    func openPart(
        _ part: Range<Int64>,
        of version: ItemVersion,
        threadID: Int32,
        completion: @escaping @Sendable (Result<Int32, Errno>) -> Void
    ) -> ContentRequest
    /// `rm` of an entry of `.versions`, or `mv` of one over its item; answered exactly once, when the cloud has taken it or will not. EBUSY
    /// against another party's claim on the item.
    func changeVersion(
        _ change: VersionChange,
        path: ItemPath,
        version: ItemVersion,
        threadID: Int32,
        completion: @escaping @Sendable (Errno?) -> Void
    )

    /// Before an unlink, rmdir or replacing rename by a program takes a name away; a hard link's other names keep the inode.
    func aboutToDelete(key: InodeKey, parent: InodeKey, name: Name, isLastName: Bool)
    /// What was announced so could not be done: the inode still has its name.
    func deletionFailed(key: InodeKey)
    /// A program wrote to an inode that the engine had replaced before: these bytes are in no file of the tree any more. Called when
    /// its handle is released; the descriptor is open for reading.
    func orphanWritten(key: InodeKey, lastParent: InodeKey, lastName: Name, descriptor: consuming OwnedDescriptor)
    /// The mount is gone, whoever ended it.
    func unmounted()
}

/// A host without a cloud gives up no content, and has no such folders.
extension DriverHost {
    package func used(_ key: InodeKey) {}
    package func isUnpopulated(_ folder: InodeKey) -> Bool { false }
    package func listingWaits(
        folder: InodeKey,
        completion: @escaping @Sendable (Errno?) -> Void
    ) -> ContentRequest? { nil }
    package func isListed(_ folder: InodeKey) -> Bool { true }
    package func populate(_ folder: InodeKey, _ name: Name) throws(Errno) -> Bool { false }
    package func cloudEntries(of folder: InodeKey) throws(Errno) -> [CloudEntry] { [] }
    package func hasCloudEntries(_ folder: InodeKey) throws(Errno) -> Bool { false }
    package func cloudName(like folded: FoldedName, in folder: InodeKey) throws(Errno) -> Name? { nil }
}

/// Virtual attributes `user.ubiquity.NAME`: readable, not listed.
package enum ItemAttributeName: String, Sendable, Hashable, CaseIterable {
    case state, percent, revision, conflicts
}

/// What can be done to an entry of `.versions`.
package enum VersionChange: Sendable, Hashable {
    /// A conflict version is resolved, a saved one goes.
    case remove
    /// It becomes the item's content, and is no version any more: a conflict version is resolved by it.
    case bringBack
}

/// Something asked of the host that may be called off. After `cancel` the completion may still be called, and is ignored.
package final class ContentRequest: Sendable {
    private let action: @Sendable () -> Void

    package init(cancel: @escaping @Sendable () -> Void) { action = cancel }

    package func cancel() { action() }
}

/// What lies at `.versions/PATH`: the versions of an item, and the names of what lies in it if it is a folder.
package struct VersionListing: Hashable, Sendable {
    /// Of the item: versions of a package are folders.
    package var kind: ItemKind
    package var versions: [ItemVersion]
    /// Those that lead to an unresolved version; others can be entered all the same.
    package var children: [Name]

    package init(kind: ItemKind = .file, versions: [ItemVersion] = [], children: [Name] = []) {
        self.kind = kind
        self.versions = versions
        self.children = children
    }
}
