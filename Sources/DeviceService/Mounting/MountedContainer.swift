internal import Driver
internal import Replica
internal import SyncEngine
internal import UbiquityControl
internal import UbiquityModel

/// A container that is mounted: the parts that belong together.
struct MountedContainer: Sendable {
    let entry: MountTable.Entry
    let info: ContainerInfo
    let replica: Replica
    let engine: ContainerEngine
    let mount: Mount
    let host: ServiceHost

    /// The absolute path of an item.
    func path(of item: ItemPath) -> ControlPath {
        item.isRoot ? entry.mountPoint : ControlPath(bytes: entry.mountPoint.bytes + [UInt8(ascii: "/")] + item.bytes)
    }

    /// The absolute path for what the engine names in words.
    func path(of item: String) -> ControlPath {
        item.isEmpty
            ? entry.mountPoint : ControlPath(bytes: entry.mountPoint.bytes + [UInt8(ascii: "/")] + Array(item.utf8))
    }

    /// Programs that have files open for writing, for the message of what cannot be done meanwhile.
    func writersInWords() -> String? {
        let writers = mount.writers(under: nil)
        guard let first = writers.first else { return nil }
        let others = writers.count > 1 ? " (and \(writers.count - 1) more)" : ""
        return "\(first.path) by \(first.program ?? "a program") (pid \(first.process))\(others)"
    }
}
