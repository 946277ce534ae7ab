import CFuse3
import CLinux
import Glibc
import Replica
import SystemPackage
import UbiquityModel

/// A folder of `.versions` that a program lists: its entries as they were when it was opened.
final class VersionFolderHandle: Sendable {
    let entries: [(name: Name, type: mode_t)]

    init(_ listing: VersionListing) {
        let version = listing.kind == .package ? FileMode.folder : FileMode.file
        entries =
            VersionName.names(of: listing.versions).map { ($0, version) }
            + listing.children.map { ($0, FileMode.folder) }
    }

    /// A folder in a version of a package.
    init(_ elements: [VersionContents.Element]) {
        entries = elements.compactMap { entry in
            let type =
                switch entry.element.kind {
                case .folder: FileMode.folder
                case .symlink: FileMode.symlink
                case .file: FileMode.file
                }
            return entry.element.path.last.map { ($0, type) }
        }
    }
}

/// `.versions`: read-only but for `rm` of a version. Nothing of the engine's goes through these folders, so here a lookup may wait.
///
/// Accessing versions is like accessing contents (semantics section 4): listing and reading them waits for another's write claim.
///
/// A version of a package is a folder, and `rm -r` and `mv` take away what lies in it before they take it away itself. The former succeeds
/// and does nothing, so that nobody can make half a version; the latter, `rmdir` of the version, with or without anything in it, is what
/// resolves.
extension Filesystem {
    func replyVersionsRoot(_ request: Request) {
        var entry = versions.rootEntry()
        fuse_reply_entry(request.raw, &entry)
    }

    /// Asks the host what is at a path, and goes on with that.
    private func withListing(
        _ request: Request,
        _ path: ItemPath,
        then: @escaping @Sendable (VersionListing) throws(Errno) -> Void
    ) {
        deferrals.wait(
            request,
            begin: { completion in
                host.versions(of: path, completion: completion)
                return ContentRequest(cancel: {})
            },
            nothing: VersionListing(),
            resume: { result in request.attempt { () throws(Errno) in try then(try result.get()) } }
        )
    }

    func lookupVersion(_ request: Request, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>) {
        request.attempt { () throws(Errno) in
            let itemName = try self.name(name)
            switch try versions.kind(parent) {
            case .folder(let path): lookupVersion(request, path, itemName)
            case .version: throw .notDirectory
            case .package, .element:
                let (package, folder) = try packageFolder(parent)
                withContents(request, package) { [self] contents throws(Errno) in
                    guard let element = contents[folder.appending(itemName)] else { throw .noSuchFileOrDirectory }
                    replyVersion(request, .element(of: package, element))
                }
            }
        }
    }

    private func lookupVersion(_ request: Request, _ path: ItemPath, _ name: Name) {
        withListing(request, path) { [self] listing throws(Errno) in
            if let index = VersionName.names(of: listing.versions).firstIndex(of: name) {
                let version = listing.versions[index]
                guard listing.kind == .package else {
                    return replyVersion(request, .version(of: path, version, name: name))
                }
                return replyVersion(request, .package(VersionPackage(of: path, version, name: name)))
            }
            let child = path.appending(name)
            if listing.children.contains(name) { return replyVersion(request, .folder(child)) }
            guard listing.kind == .folder else { throw .noSuchFileOrDirectory }
            // Without a conflict it is in no listing, but what has versions can be entered.
            withListing(request, child) { [self] _ throws(Errno) in replyVersion(request, .folder(child)) }
        }
    }

    /// A folder in a version of a package. ENOTDIR for anything else.
    private func packageFolder(_ id: fuse_ino_t) throws(Errno) -> (VersionPackage, ItemPath) {
        switch try versions.kind(id) {
        case .package(let package): return (package, .root)
        case .element(let package, let entry) where entry.isFolder: return (package, entry.element.path)
        case .folder, .version, .element: throw .notDirectory
        }
    }

    /// Asks the host what a version of a package is made of, unless that is known, and goes on with that.
    private func withContents(
        _ request: Request,
        _ package: VersionPackage,
        then: @escaping @Sendable (VersionContents) throws(Errno) -> Void
    ) {
        if let known = package.contents {
            return request.attempt { () throws(Errno) in try then(known) }
        }
        deferrals.wait(
            request,
            begin: { completion in
                host.packageIndex(of: package.version) { completion($0.map { VersionContents($0) }) }
                return ContentRequest(cancel: {})
            },
            nothing: VersionContents(PackageIndex([])),
            resume: { result in
                request.attempt { () throws(Errno) in
                    let contents = try result.get()
                    package.contents = contents
                    try then(contents)
                }
            }
        )
    }

    private func replyVersion(_ request: Request, _ kind: VersionTree.Kind) {
        var entry = versions.enter(kind)
        if fuse_reply_entry(request.raw, &entry) != 0 { versions.forget(entry.ino, 1) }
    }

    func openVersionFolder(_ request: Request, _ id: fuse_ino_t) {
        request.attempt { () throws(Errno) in
            guard case .folder(let path) = try versions.kind(id) else {
                let (package, folder) = try packageFolder(id)
                return withContents(request, package) { [self] contents throws(Errno) in
                    reply(request, opened: .versionFolder(VersionFolderHandle(contents.entries(of: folder))))
                }
            }
            afterClaims(request, path) { [self] () throws(Errno) in
                withListing(request, path) { [self] listing throws(Errno) in
                    reply(request, opened: .versionFolder(VersionFolderHandle(listing)))
                }
            }
        }
    }

    func listVersions(
        _ request: Request,
        _ handle: VersionFolderHandle,
        _ size: Int,
        _ offset: Int64,
        withAttributes: Bool
    ) {
        var listing = Listing(request: request, room: size, withAttributes: withAttributes)
        for index in handle.entries.indices.dropFirst(Int(clamping: max(0, offset))) {
            let entry = handle.entries[index]
            var status = stat()
            // Not zero, which some programs take for a deleted entry; the real number comes with the lookup.
            status.st_ino = ino_t(NodeTable.versionBit)
            status.st_mode = entry.type
            let fits = entry.name.withCString { listing.add($0, status, next: Int64(index + 1)) }
            if !fits { break }
        }
        listing.reply { versions.forget($0, 1) }
    }

    func openVersion(_ request: Request, _ id: fuse_ino_t, _ flags: Int32) {
        request.attempt { () throws(Errno) in
            let kind = try versions.kind(id)
            guard !Self.isWriting(flags) else { throw .readOnly }
            switch kind {
            case .version(let path, let version, _):
                afterClaims(request, path, mayWait: flags & O_NONBLOCK == 0) { [self] () throws(Errno) in
                    withVersion(request) { [host] completion in
                        host.openVersion(
                            path: path,
                            revision: version.revision,
                            threadID: request.thread,
                            completion: completion
                        )
                    }
                }
            case .element(let package, let entry) where !entry.isFolder:
                afterClaims(request, package.path, mayWait: flags & O_NONBLOCK == 0) { [self] () throws(Errno) in
                    withVersion(request) { [host] completion in
                        host.openPart(
                            entry.part,
                            of: package.version,
                            threadID: request.thread,
                            completion: completion
                        )
                    }
                }
            case .folder, .package, .element: throw .isDirectory
            }
        }
    }

    /// Asks the host for a content, and answers with a handle on it.
    private func withVersion(
        _ request: Request,
        _ ask: (@escaping @Sendable (Result<Int32, Errno>) -> Void) -> ContentRequest
    ) {
        deferrals.wait(
            request,
            begin: { completion in
                // Nobody takes what comes after the end of the wait: then it is closed at once.
                ask { result in completion(result.map { SharedDescriptor($0) }) }
            },
            nothing: nil,
            resume: { [self] (result: Result<SharedDescriptor?, Errno>) in
                request.attempt { () throws(Errno) in
                    guard let descriptor = try result.get() else { throw .noSuchFileOrDirectory }
                    reply(request, opened: .version(descriptor))
                }
            }
        )
    }

    /// EINVAL for what is no link.
    func versionTarget(_ id: fuse_ino_t) throws(Errno) -> [UInt8] {
        guard case .element(_, let entry) = try versions.kind(id), case .symlink(let target) = entry.element.kind else {
            throw .invalidArgument
        }
        return target
    }

    /// The extended attributes of what lies in a version of a package: whoever copies it with them has them back.
    func versionAttributes(_ id: fuse_ino_t) throws(Errno) -> [[UInt8]: [UInt8]] {
        if case .element(_, let entry) = try versions.kind(id) { entry.element.extended } else { [:] }
    }

    // MARK: Removing and bringing back

    func unlinkVersion(_ request: Request, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>) {
        request.attempt { () throws(Errno) in try removeVersion(request, parent, name) }
    }

    /// `rmdir` of a version of a package; of nothing else that is a folder here.
    func removeVersionFolder(_ request: Request, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>) {
        request.attempt { () throws(Errno) in try removeVersion(request, parent, name) }
    }

    private func removeVersion(
        _ request: Request,
        _ parent: fuse_ino_t,
        _ name: UnsafePointer<CChar>
    ) throws(Errno) {
        let itemName = try self.name(name)
        guard case .folder(let path) = try versions.kind(parent) else {
            let (package, folder) = try packageFolder(parent)
            guard let element = package.contents?[folder.appending(itemName)] else { throw .noSuchFileOrDirectory }
            versions.retire(.element(of: package, element))
            return request.succeed()
        }
        // The kernel has looked it up just before, and sees to it that a folder is removed as one.
        guard let kind = versions.version(of: path, named: itemName), let version = kind.version else {
            throw .readOnly
        }
        change(request, .remove, kind, version, of: path)
    }

    /// `mv` of an entry. Over the item whose version it is it brings it back; so does that of a package's into the package, which is what `mv`
    /// makes of "over" a folder. Anything else is copied by `mv`, which then removes the entry.
    ///
    /// What the kernel believes of the target's name after that, that it is the entry, is taken back at once.
    func renameVersion(
        _ request: Request,
        _ parent: fuse_ino_t,
        _ name: UnsafePointer<CChar>,
        _ newParent: fuse_ino_t,
        _ newName: UnsafePointer<CChar>,
        _ flags: UInt32
    ) {
        request.attempt { () throws(Errno) in
            guard case .folder(let path) = try versions.kind(parent) else { throw .crossDevice }
            let itemName = try self.name(name)
            let targetName = try self.name(newName)
            let target = try node(newParent)
            guard let kind = versions.version(of: path, named: itemName), let version = kind.version,
                let folder = self.path(of: target)
            else { throw .crossDevice }
            switch kind {
            case .version:
                guard folder.appending(targetName) == path else { throw .crossDevice }
                guard flags & UInt32(CLINUX_RENAME_NOREPLACE) == 0 else { throw .fileExists }
            case .package:
                guard folder == path, targetName == itemName else { throw .crossDevice }
            case .folder, .element: throw .crossDevice
            }
            guard flags & ~UInt32(CLINUX_RENAME_NOREPLACE) == 0 else { throw .invalidArgument }
            try requireAccess(request, target, W_OK | X_OK)
            change(request, .bringBack, kind, version, of: path) { [notices] in
                notices.push(.entry(folder: target.id, name: targetName))
            }
        }
    }

    /// - Parameter done: runs when the kernel was told that it is done.
    private func change(
        _ request: Request,
        _ change: VersionChange,
        _ kind: VersionTree.Kind,
        _ version: ItemVersion,
        of path: ItemPath,
        done: @escaping @Sendable () -> Void = {}
    ) {
        deferrals.wait(
            request,
            begin: { completion in
                host.changeVersion(change, path: path, version: version, threadID: request.thread) {
                    completion($0.map { .failure($0) } ?? .success(()))
                }
                return ContentRequest(cancel: {})
            },
            nothing: (),
            resume: { [versions] result in
                request.attempt { () throws(Errno) in
                    try result.get()
                    versions.retire(kind)
                    request.succeed()
                    done()
                }
            }
        )
    }
}
