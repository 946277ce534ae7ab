import Glibc
import Replica
import SystemPackage
import UbiquityModel

extension ContainerEngine {
    /// Before a folder can be looked into, it is known if all in it is in the cloud only.
    func stage(_ remote: RemoteItem) async throws -> String {
        if case .file(let file) = remote.content, file.isPackage { return try await stagePackage(remote, file) }
        // Nothing with content: to wake another thread for it, and be woken by that, takes as long.
        let staged = try Preparation.stage(remote, in: replica)
        if remote.content == .folder, let key = try? replica.staging.observe(staged).key {
            noteUnpopulated(remote, key, staged: staged)
        }
        return staged
    }
}

/// Prepares what is to appear, in the staging folder. Blocks.
enum Preparation {
    /// A folder, a symlink, an empty file or a placeholder with all its attributes.
    /// - Returns: its name in the staging folder.
    static func stage(_ remote: RemoteItem, in replica: Replica) throws(Errno) -> String {
        switch remote.content {
        case .folder:
            let name = try replica.staging.makeFolder(mode: remote.attributes.mode)
            let folder = try replica.staging.open(name, flags: O_RDONLY | O_DIRECTORY)
            _ = try ExtendedAttributes.replaceSynced(folder.raw, with: remote.attributes.extended)
            try setModified(folder.raw, remote.attributes.modified)
            return name
        case .symlink(let target):
            let name = try replica.staging.makeSymlink(target: target)
            let parts = remote.attributes.modified.parts
            let time = timespec(tv_sec: Int(parts.seconds), tv_nsec: Int(parts.nanoseconds))
            var times = [time, time]
            _ = utimensat(replica.staging.descriptor, name, &times, AT_SYMLINK_NOFOLLOW)
            return name
        case .file(let file) where file.isPackage:
            return try PackageStaging.stage(remote, file, in: replica).name
        case .file(let file) where file.size == 0 && file.content != nil:
            let staged = StagedContent(try replica.staging.makeFile())
            try staged.complete(size: 0, attributes: remote.attributes)
            return staged.name
        case .file(let file):
            let placeholder = Placeholder(
                revision: file.revision,
                generation: .random(in: .min ... .max),
                size: file.size,
                modified: remote.attributes.modified,
                mode: remote.attributes.mode,
                wasAnnounced: remote.isAnnounced
            )
            return try replica.staging.makePlaceholder(placeholder, extended: remote.attributes.extended).name
        }
    }
}
