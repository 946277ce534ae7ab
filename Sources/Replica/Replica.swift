internal import CLinux
internal import Glibc
internal import SystemPackage
package import UbiquityModel

/// One container on this device: `tree` (the backing tree), `staging`, `state.sqlite`, `deletions.log`, all in one
/// folder on one disk.
///
/// One process has it open at a time: the folder is locked as long as this object lives, and the lock goes with the
/// process.
package final class Replica: Sendable {
    package let directory: String
    package let tree: BackingTree
    package let staging: Staging
    package let database: StateDatabase
    package let deletions: DeletionLog
    private let lock: OwnedDescriptor

    package var folders: FolderIndex { tree.folders }
    package var treePath: String { directory + "/tree" }
    package var stagingPath: String { staging.path }

    /// Opens a replica, makes what is missing of it, and empties the staging folder.
    /// - Parameter isCaseInsensitive: as the container was made; the same each time.
    package init(directory: String, isCaseInsensitive: Bool = false) throws(ReplicaError) {
        self.directory = directory
        try Self.makeFolder(directory, mode: 0o700)
        lock = try Self.locked(directory)
        let treePath = directory + "/tree"
        let stagingPath = directory + "/staging"
        try Self.makeFolder(treePath, mode: 0o755)
        try Self.makeFolder(stagingPath, mode: 0o700)
        tree = try ReplicaError.naming("open", treePath) { () throws(Errno) in try BackingTree(path: treePath) }
        let staging = try ReplicaError.naming("open", stagingPath) { () throws(Errno) in
            let staging = try Staging(path: stagingPath)
            try staging.clean()
            return staging
        }
        try Self.checkExtendedAttributes(staging)
        self.staging = staging
        deletions = try DeletionLog(path: directory + "/deletions.log")
        database = try StateDatabase(path: directory + "/state.sqlite", isCaseInsensitive: isCaseInsensitive)
    }

    private static func makeFolder(_ path: String, mode: mode_t) throws(ReplicaError) {
        try ReplicaError.naming("create", path) { () throws(Errno) in
            var parent = path.startIndex
            // As `mkdir -p`: those above are made too, with the usual mode less what the umask takes.
            while let slash = path[parent...].dropFirst().firstIndex(of: "/") {
                try make(String(path[..<slash]), 0o777)
                parent = slash
            }
            try make(path, mode)
        }
    }

    private static func make(_ path: String, _ mode: mode_t) throws(Errno) {
        do throws(Errno) { try called(mkdir(path, mode)) } catch .fileExists { return }
    }

    /// The lock of a process that ends, or of one that is just being started by another, goes a moment later. One that is really held is to be
    /// told soon.
    private static func locked(_ directory: String) throws(ReplicaError) -> OwnedDescriptor {
        do throws(Errno) {
            let folder = OwnedDescriptor(try checked(clinux_open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0)))
            try checked(clinux_try_lock_for(folder.raw, 2000))
            return folder
        } catch .wouldBlock {
            throw .inUse(path: directory)
        } catch {
            throw .system(operation: "open", path: directory, error)
        }
    }

    private static func checkExtendedAttributes(_ staging: Staging) throws(ReplicaError) {
        do throws(Errno) {
            let trial = try staging.makeFile()
            defer { try? staging.remove(trial.name) }
            try ExtendedAttributes.set(trial.descriptor.raw, "user.ubiquity..trial", [1])
        } catch .notSupported {
            throw .noExtendedAttributes(path: staging.path)
        } catch {
            throw .system(operation: "set an extended attribute in", path: staging.path, error)
        }
    }
}
