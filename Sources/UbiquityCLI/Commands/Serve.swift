import ArgumentParser
import CLinux
import CloudServer
import DeviceService
import Glibc
import Logging
import UbiquityControl

struct ServerDataOptions: ParsableArguments {
    @Option(help: "The server's data folder.")
    var data: String?

    func folder(_ home: HomeDirectories) throws(ControlError) -> String {
        guard let data else { return home.server }
        let path = try ItemArgument(word: data)
        return (path.target ?? path.path).description
    }
}

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Be the cloud: accounts, catalogue and contents for devices.",
        discussion: """
            Runs in the foreground and prints `listening on URL` when it is ready. Listens on this machine only, unless --listen \
            says otherwise; on every other address with TLS, and a certificate that invitations carry.
            """
    )

    @OptionGroup var server: ServerDataOptions

    @Option(
        help: ArgumentHelp("Where to listen; port 0 is any free one.", valueName: "host:port"),
        transform: parseAddress
    )
    var listen: ListenAddress?

    @Option(help: ArgumentHelp("Where the catalogue is: sqlite:PATH (default: in the data folder).", valueName: "url"))
    var catalog: String?

    @Option(help: ArgumentHelp("Where the contents are: folder:PATH (default: in the data folder).", valueName: "url"))
    var chunks: String?

    /// Started by `up`: belongs to one device, and opens itself to the network when that invites another.
    @Flag(help: .hidden)
    var embedded = false

    @Option(help: .hidden)
    var readyDescriptor: Int32?

    @Option(help: .hidden)
    var log: String?

    func run() async throws {
        clinux_keep_freed_memory()
        signal(SIGPIPE, SIG_IGN)
        DescriptorLimit.raise()
        do {
            try await serve()
        } catch {
            let problem = (error as? ControlError) ?? ControlError("server", "\(error)")
            if let readyDescriptor {
                BackgroundProcess.tell(BackgroundProcess.Report(error: problem), on: readyDescriptor)
            }
            throw problem
        }
    }

    private func serve() async throws {
        let home = try HomeDirectories.current()
        let bounded = log.flatMap { BoundedLog(path: $0) }
        bounded?.adoptStandardOutput()
        let level = LineLogHandler.requestedLevel() ?? .info
        let logger = Logger(label: "server") { label in
            LineLogHandler(label: label, sink: bounded.map { .log($0) } ?? .standardError, level: level)
        }
        var configuration = ServerConfiguration(
            dataDirectory: try server.folder(home),
            isEmbedded: embedded,
            catalogURL: catalog,
            chunksURL: chunks,
            logger: logger
        )
        if let listen { configuration.listen = listen }
        let (ready, isEmbedded) = (readyDescriptor, embedded)
        try await ServerAccounts.serve(configuration) { url in
            guard let ready else { return Terminal.write("listening on \(url)") }
            do throws(ControlError) {
                if isEmbedded { try EmbeddedServer.record(url: url, home) }
                BackgroundProcess.tell(BackgroundProcess.Report(url: url), on: ready)
            } catch {
                // A server that nothing can find again does not stay.
                BackgroundProcess.tell(BackgroundProcess.Report(error: error), on: ready)
                Glibc.exit(EXIT_FAILURE)
            }
        }
    }
}

@Sendable private func parseAddress(_ text: String) throws -> ListenAddress {
    guard let address = ListenAddress(text) else { throw ValidationError("\"\(text)\" is no HOST:PORT") }
    return address
}
