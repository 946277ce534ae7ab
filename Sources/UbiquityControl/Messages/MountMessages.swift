/// Mounts a container, importing what lies at the mount point if asked to. Harmless if it is mounted there already.
package struct MountRequest: ControlRequest {
    package static var verb: String { "mount" }

    /// `nil`: the default container, or the only one that this device may use.
    package var container: String?
    package var mountPoint: ControlPath
    /// Makes the container if the account has none of that name.
    package var createsContainer: Bool
    package var imports: Bool
    /// As for `mount -o`.
    package var options: [String]

    package struct Answer: Codable, Sendable {
        package var container: String
        package var mountPoint: ControlPath
        /// Nothing had to be done.
        package var wasMounted: Bool
        /// How many entries of the folder were moved into the container.
        package var importedCount: Int

        package init(container: String, mountPoint: ControlPath, wasMounted: Bool, importedCount: Int) {
            self.container = container
            self.mountPoint = mountPoint
            self.wasMounted = wasMounted
            self.importedCount = importedCount
        }
    }

    package init(
        container: String?,
        mountPoint: ControlPath,
        createsContainer: Bool,
        imports: Bool,
        options: [String] = []
    ) {
        self.container = container
        self.mountPoint = mountPoint
        self.createsContainer = createsContainer
        self.imports = imports
        self.options = options
    }
}

/// Unmounts and forgets a mount.
package struct UnmountRequest: ControlRequest {
    package static var verb: String { "unmount" }

    package var mountPoint: ControlPath

    package struct Answer: Codable, Sendable {
        package var container: String
        /// Mounts that are left.
        package var remaining: Int

        package init(container: String, remaining: Int) {
            self.container = container
            self.remaining = remaining
        }
    }

    package init(mountPoint: ControlPath) { self.mountPoint = mountPoint }
}

/// Unmounts everything and ends the service; its process is gone soon after the connection closes.
package struct StopRequest: ControlRequest {
    package typealias Answer = Nothing
    package static var verb: String { "stop" }

    /// Whether the mounts are forgotten (`down`), or come back at the next start.
    package var forgetsMounts: Bool
    /// Whether programs that have files open for writing are an error.
    package var refusesWriters: Bool

    package init(forgetsMounts: Bool, refusesWriters: Bool) {
        self.forgetsMounts = forgetsMounts
        self.refusesWriters = refusesWriters
    }
}

/// Ends the account's use for good: nothing is sent or fetched any more, and the mounts refuse whoever wants to enter. What programs
/// have open stays good. The caller then removes the account, before another request.
package struct SignOutRequest: ControlRequest {
    package static var verb: String { "sign-out" }

    package struct Answer: Codable, Sendable {
        /// Changes that the cloud does not have.
        package var unsent: Int
        /// Mounts that are left, for what is open in them.
        package var mounts: [ControlPath]

        package init(unsent: Int, mounts: [ControlPath]) {
            self.unsent = unsent
            self.mounts = mounts
        }
    }

    package init() {}
}

/// What has not been sent or applied: asked before the local copy is deleted.
package struct UnsentRequest: ControlRequest {
    package static var verb: String { "unsent" }

    package struct Answer: Codable, Sendable {
        package var count: Int
        package init(count: Int) { self.count = count }
    }

    package init() {}
}

/// Airplane mode, kept over restarts.
package struct OfflineRequest: ControlRequest {
    package typealias Answer = Nothing
    package static var verb: String { "offline" }

    package var isOn: Bool

    package init(isOn: Bool) { self.isOn = isOn }
}
