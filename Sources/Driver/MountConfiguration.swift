package struct MountConfiguration: Sendable {
    /// An existing, empty folder.
    package var mountPoint: String
    /// Shown as the mount's source.
    package var containerName: String
    /// Whether the root's listing has `.versions`; it can be entered in any case.
    package var showVersions: Bool
    /// Further mount options, such as `allow_other`.
    package var options: [String]

    package var mode: DriverMode
    /// The socket of the passthrough helper.
    package var helperPath: String
    /// Whether the container holds no two names of a folder that are equal without their case.
    package var isCaseInsensitive: Bool
    /// Whether programs may change nothing (EROFS), since it could never be sent. The engine's changes go through the mount as well: the
    /// kernel's own option would stop these, too.
    package var isReadOnly: Bool

    /// Where systemd has it listen.
    package static let usualHelperPath = "/run/ubiquity/passthrough.socket"

    var letsOthersIn: Bool { options.contains { $0 == "allow_other" || $0 == "allow_root" } }

    package init(
        mountPoint: String,
        containerName: String,
        showVersions: Bool = false,
        options: [String] = [],
        mode: DriverMode = .best,
        helperPath: String = MountConfiguration.usualHelperPath,
        isCaseInsensitive: Bool = false,
        isReadOnly: Bool = false
    ) {
        self.isReadOnly = isReadOnly
        self.isCaseInsensitive = isCaseInsensitive
        self.mode = mode
        self.helperPath = helperPath
        self.mountPoint = mountPoint
        self.containerName = containerName
        self.showVersions = showVersions
        self.options = options
    }
}

/// Why a container could not be mounted.
package enum MountError: Error, Hashable, Sendable {
    case notADirectory(String)
    case notEmpty(String)
    /// Something is mounted there; its source as the kernel shows it.
    case alreadyMounted(String, by: String)
    /// What is missing, in words.
    case fuseMissing(String)
    case refused(String)
}

extension MountError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notADirectory(let path): "\(path) is not a folder"
        case .notEmpty(let path): "\(path) is not empty"
        case .alreadyMounted(let path, let source): "\(path) is already mounted by \(source)"
        case .fuseMissing(let what): "FUSE is not available: \(what)"
        case .refused(let why): "cannot mount: \(why)"
        }
    }
}
