import DeviceService
import Glibc
import UbiquityControl

/// What `up`, `join` and `mount` do about the mount.
enum Mounting {
    /// What leads to a mount at a folder, which is made if there is none. If that fails, what was made for it goes again.
    static func at(
        _ word: String,
        imports: Bool,
        _ home: HomeDirectories,
        _ body: (ControlPath) async throws -> Void
    ) async throws {
        let (point, made) = try MountPoint.prepare(ArgumentBytes.decode(word))
        do {
            try check(point, imports: imports, home)
            try await body(point)
        } catch {
            // Not if something is mounted there all the same: the kernel refuses that.
            HomeDirectories.removeEmptyFolders(made)
            throw error
        }
    }

    /// Looks at the folder before anything is started, signed in or used up: an error here leaves everything as it was.
    private static func check(_ point: ControlPath, imports: Bool, _ home: HomeDirectories) throws(ControlError) {
        let table = try MountTable.load(home)
        let entry = table.entries.first { $0.mountPoint == point }
        switch try MountPoint.condition(of: point) {
        case .empty, .dead: break
        case .occupied:
            guard imports || entry?.isImporting == true else {
                throw ControlError(
                    "\(point)",
                    "it is not empty",
                    remedy: "`--import` moves what is there into the container; or choose another folder"
                )
            }
        case .ubiquity:
            guard entry != nil else {
                throw ControlError("\(point)", "another ubiquity is mounted there", remedy: "choose another folder")
            }
        case .foreign(let source):
            throw ControlError("\(point)", "\(source) is mounted there", remedy: "choose another folder")
        }
    }

    /// The same account comes back to what it had mounted when it was signed out.
    static func mountAgain(_ startup: Startup) throws {
        guard let account = try Account.load(startup.home) else { return }
        let own = try ContainerFolder.all(startup.home, of: account).map(\.path)
        let entries = try MountTable.load(startup.home).entries.filter {
            $0.signedOutReplica.map { own.contains($0) } ?? false
        }
        for entry in entries {
            let request = MountRequest(
                container: entry.container,
                mountPoint: entry.mountPoint,
                createsContainer: false,
                imports: entry.isImporting,
                options: entry.options
            )
            try mount(request, startup)
        }
    }

    /// Signed out of another one's server, a server of one's own would not bring the documents back.
    static func refuseOthers(at point: ControlPath, _ home: HomeDirectories) throws(ControlError) {
        let entry = try MountTable.load(home).entries.first { $0.mountPoint == point }
        guard entry?.signedOutReplica != nil, !EmbeddedServer.exists(home) else { return }
        throw ControlError(
            "\(point)",
            "this device was signed out of the account whose documents were there",
            remedy: "`ubiquity sign-in URL` brings them back; `ubiquity down \(point)` gives them up here"
        )
    }

    /// Mounts, starting what is missing, and says what came of it.
    static func mount(_ request: MountRequest, _ startup: Startup) throws {
        let (answer, serverError) = try startup.ask(request, lettingOthersIn: true)
        let imported = answer.importedCount > 0 ? ", with \(answer.importedCount) imported entries" : ""
        let state = answer.wasMounted ? "is mounted" : "mounted"
        Terminal.write("\(answer.container) \(state) at \(answer.mountPoint)\(imported)")
        if let serverError { throw serverError }
    }
}
