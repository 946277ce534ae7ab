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
        /// Since signing out: the folder of the replica, which tells whose the mount is. `nil`: of the account that is signed in.
        package var signedOutReplica: String?

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

    package func save(_ home: HomeDirectories) throws(ControlError) {
        try StateFile.write(self, to: home.mountsFile, of: home)
    }

    // MARK: - Signing out and in

    /// Nothing of an account comes back under another one: its mounts, also imports that were begun, wait for it.
    /// - Parameter replicas: of the account.
    package mutating func signOut(_ replicas: [ContainerFolder]) {
        entries = entries.compactMap { entry in
            if entry.signedOutReplica != nil { return entry }
            guard let replica = replicas.first(where: { $0.info.id.text == entry.container }) else { return nil }
            var entry = entry
            entry.signedOutReplica = replica.path
            return entry
        }
    }

    /// The mounts of the account come back, those of another one are forgotten.
    /// - Returns: whether anything has changed.
    mutating func signIn(_ replicas: [ContainerFolder]) -> Bool {
        let before = entries
        entries = entries.compactMap { entry in
            guard let replica = entry.signedOutReplica else { return entry }
            guard replicas.contains(where: { $0.path == replica && $0.info.id.text == entry.container }) else {
                return nil
            }
            var entry = entry
            entry.signedOutReplica = nil
            return entry
        }
        return entries != before
    }

    package subscript(container: String) -> Entry? {
        get { entries.first { $0.container == container } }
        set {
            entries.removeAll { $0.container == container }
            if let newValue { entries.append(newValue) }
        }
    }
}
