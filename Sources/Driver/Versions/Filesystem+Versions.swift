import CFuse3
import Glibc
import SystemPackage
import UbiquityModel

/// A folder of `.versions` that a program lists: its entries as they were when it was opened.
final class VersionFolderHandle: Sendable {
    let entries: [(name: Name, isFolder: Bool)]

    init(_ listing: VersionListing) {
        entries = VersionName.names(of: listing.versions).map { ($0, false) } + listing.children.map { ($0, true) }
    }
}

/// `.versions`: read-only but for `rm` of a version. Nothing of the engine's goes through these folders, so here a lookup may wait.
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
            guard case .folder(let path) = try versions.kind(parent) else { throw .notDirectory }
            withListing(request, path) { [self] listing throws(Errno) in
                if let index = VersionName.names(of: listing.versions).firstIndex(of: itemName) {
                    return replyVersion(request, .version(of: path, listing.versions[index], name: itemName))
                }
                guard listing.children.contains(itemName) else { throw .noSuchFileOrDirectory }
                replyVersion(request, .folder(path.appending(itemName)))
            }
        }
    }

    private func replyVersion(_ request: Request, _ kind: VersionTree.Kind) {
        var entry = versions.enter(kind)
        if fuse_reply_entry(request.raw, &entry) != 0 { versions.forget(entry.ino, 1) }
    }

    func openVersionFolder(_ request: Request, _ id: fuse_ino_t) {
        request.attempt { () throws(Errno) in
            guard case .folder(let path) = try versions.kind(id) else { throw .notDirectory }
            withListing(request, path) { [self] listing throws(Errno) in
                reply(request, opened: .versionFolder(VersionFolderHandle(listing)))
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
            status.st_mode = entry.isFolder ? FileMode.folder : FileMode.file
            let fits = entry.name.withCString { listing.add($0, status, next: Int64(index + 1)) }
            if !fits { break }
        }
        listing.reply { versions.forget($0, 1) }
    }

    func openVersion(_ request: Request, _ id: fuse_ino_t, _ flags: Int32) {
        request.attempt { () throws(Errno) in
            guard case .version(let path, let version, _) = try versions.kind(id) else { throw .isDirectory }
            guard flags & O_ACCMODE == O_RDONLY else { throw .readOnly }
            deferrals.wait(
                request,
                begin: { completion in
                    host.openVersion(path: path, revision: version.revision, threadID: request.thread) { result in
                        completion(result.map { SharedDescriptor($0) })
                    }
                    return ContentRequest(cancel: {})
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
    }

    func unlinkVersion(_ request: Request, _ parent: fuse_ino_t, _ name: UnsafePointer<CChar>) {
        request.answer { () throws(Errno) in
            let itemName = try self.name(name)
            guard case .folder(let path) = try versions.kind(parent) else { throw .notDirectory }
            // The kernel has looked it up just before.
            guard let version = versions.version(of: path, named: itemName) else { throw .readOnly }
            if let error = host.removeVersion(path: path, revision: version.revision) { throw error }
        }
    }
}
