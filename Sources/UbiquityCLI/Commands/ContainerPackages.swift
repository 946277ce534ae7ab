import ArgumentParser
import CloudClient
import DeviceService
import Reconciliation
import UbiquityControl
import UbiquityModel

extension Container {
    struct Packages: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Which folders are one document, by the extensions of their names.",
            discussion: """
                Without an option, lists the extensions, one a line. A change counts for all devices, as soon as they are connected, and \
                for folders that are made or renamed from then on: those that are in the cloud stay what they are. A single folder is made \
                one by `setfattr -n user.ubiquity.package -v 1 DIR`.
                """
        )

        @Argument(help: "The container.", transform: parseContainer)
        var id: ContainerID

        @Option(help: "Folders whose names end in .EXT are one document.", transform: parseExtension)
        var add: String?

        @Option(help: "They are ordinary folders.", transform: parseExtension)
        var remove: String?

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if add != nil, remove != nil { throw ValidationError("--add and --remove exclude each other") }
        }

        func run() async throws {
            let change = PackageDeclaration(
                added: Set([add].compactMap { $0 }),
                removed: Set([remove].compactMap { $0 })
            )
            let declaration = try await Self.ask(id, change)
            guard change.isEmpty || output.json else { return }
            let extensions = PackageRules(declaration).extensions.sorted()
            output.print(.array(extensions.map { .string($0) })) {
                for name in extensions { Terminal.write(Terminal.plain(name)) }
            }
        }

        /// The service, so that it counts on this device when the command ends; the server if none runs.
        private static func ask(
            _ id: ContainerID,
            _ change: PackageDeclaration
        ) async throws(ControlError) -> PackageDeclaration {
            if let service = try service() {
                return try service.send(
                    PackagesRequest(
                        container: id.text,
                        added: change.added.sorted(),
                        removed: change.removed.sorted()
                    )
                ).declaration
            }
            let found = try await AccountCloud.ask(id.text) { (cloud, _) async throws(CloudError) -> ContainerInfo? in
                if !change.isEmpty { return try await cloud.declarePackages(id, change) }
                return try await cloud.containers().first { $0.id == id }
            }
            guard let found else { throw ControlError.noSuchContainer(id) }
            try remember(found)
            return found.packages
        }

        private static func service() throws(ControlError) -> ControlClientBox? {
            do throws(ControlError) { return try connectedService() } catch {
                if error == .noService() { return nil }
                throw error
            }
        }

        /// For a mount without the server. A service that has been started meanwhile is told by the server.
        private static func remember(_ container: ContainerInfo) throws(ControlError) {
            let home = try HomeDirectories.current()
            let startup = try Startup(home)
            defer { withExtendedLifetime(startup) {} }
            guard try startup.connect() == nil, var account = try Account.load(home),
                account.note(container.packages, of: container)
            else { return }
            try account.save(home)
        }
    }
}

@Sendable func parseExtension(_ text: String) throws -> String {
    guard let name = PackageRules.checked(text) else {
        throw ValidationError(
            "\"\(text)\" is no extension: 64 bytes at most, without blanks, \"/\" and a further \".\""
        )
    }
    return name
}
