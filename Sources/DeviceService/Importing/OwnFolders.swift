internal import CLinux
internal import Glibc
internal import Replica
internal import UbiquityControl

/// The folders in which ubiquity keeps its own files, and those that would be imported with them or into themselves: what lies in the
/// backing tree would be taken for a copy of itself, and removed.
struct OwnFolders {
    private static let why = "ubiquity keeps its own files"
    private static let remedy = "choose another folder"

    /// Without links.
    private var paths: [ControlPath] = []
    /// A bind mount gives a folder another path, but no other inode.
    private var inodes: [(device: UInt64, inode: UInt64)] = []

    init(_ home: HomeDirectories, _ replica: Replica) throws(ControlError) {
        let own = [home.configuration, home.data, home.state, home.runtime, replica.directory, replica.treePath]
        for path in Set(own).sorted() {
            let real = try Self.real(ControlPath(path))
            paths.append(real)
            var status = clinux_status()
            // Not each exists already.
            guard clinux_status_at(AT_FDCWD, real.bytes.map { CChar(bitPattern: $0) } + [0], &status) == 0 else {
                continue
            }
            inodes.append((status.device, status.inode))
        }
    }

    /// Refuses a folder that lies in one of them, or has one of them in it.
    func refuse(_ source: ControlPath) throws(ControlError) {
        let real = try Self.real(source)
        for own in paths {
            if real.relative(to: own) != nil {
                throw ControlError("\(source)", "it lies in \(own), where \(Self.why)", remedy: Self.remedy)
            }
            if own.relative(to: real) != nil {
                throw ControlError("\(source)", "it contains \(own), where \(Self.why)", remedy: Self.remedy)
            }
        }
    }

    /// Refuses a folder that is one of them, under whatever name it was met.
    func refuse(_ folder: ControlPath, _ status: clinux_status) throws(ControlError) {
        guard inodes.contains(where: { $0.device == status.device && $0.inode == status.inode }) else { return }
        throw ControlError("\(folder)", "it is a folder in which \(Self.why)", remedy: Self.remedy)
    }

    /// Without links; what is not there yet is kept by name.
    private static func real(_ path: ControlPath) throws(ControlError) -> ControlPath {
        let item = try ItemArgument(resolving: path.bytes)
        return item.target ?? item.path
    }
}
