package import UbiquityControl
internal import UbiquityModel

/// What this device has mounted, and comes back at the next start: `mounts.json`.
package struct MountTable: Codable, Sendable {
    package struct Entry: Codable, Sendable, Hashable {
        package var container: String
        package var mountPoint: ControlPath
        package var options: [String]
        /// What lies at the mount point is being moved into the container: written before the first entry is moved, and taken back
        /// when the last one has been. Until then every start goes on with it.
        package var isImporting: Bool

        package init(container: String, mountPoint: ControlPath, options: [String], isImporting: Bool) {
            self.container = container
            self.mountPoint = mountPoint
            self.options = options
            self.isImporting = isImporting
        }
    }

    package var format = FormatVersion.configuration
    package var entries: [Entry] = []
    /// Airplane mode.
    package var isOffline = false

    package init() {}

    package static func load(_ home: HomeDirectories) throws(ControlError) -> MountTable {
        try StateFile.read(MountTable.self, from: home.mountsFile) ?? MountTable()
    }

    package func save(_ home: HomeDirectories) throws(ControlError) { try StateFile.write(self, to: home.mountsFile) }

    package subscript(container: String) -> Entry? {
        get { entries.first { $0.container == container } }
        set {
            entries.removeAll { $0.container == container }
            if let newValue { entries.append(newValue) }
        }
    }
}
