import ArgumentParser
import CloudClient
import DeviceService
import Glibc
import UbiquityControl
import UbiquityModel

struct Invite: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the line to type on the next machine.",
        discussion:
            "The code in it is good once, for 15 minutes. A server on this machine is opened to the network (with TLS)."
    )

    @Option(help: "This machine's name or address, as the other machine shall use it.", transform: parseHost)
    var address: String?

    @Option(help: "Only this container (may be repeated).", transform: parseContainer)
    var container: [ContainerID] = []

    @Flag(help: "The other device may read only.")
    var readOnly = false

    @OptionGroup var output: OutputOptions

    func run() async throws {
        let invitation = try await AccountCloud.ask("invite") { (cloud, account) async throws(CloudError) in
            try await cloud.invite(
                InvitationRequest(
                    containers: container,
                    isReadOnly: readOnly,
                    opensNetwork: account.serverIsEmbedded,
                    address: address ?? ""
                )
            )
        }
        let line = "ubiquity join \(invitation.url) \(invitation.code) DIR"
        let json = JSONValue.object([
            ("url", .string(invitation.url)), ("code", .string(invitation.code)),
            ("expires", .string(invitation.expires.text)), ("command", .string(line)),
        ])
        output.print(json) {
            Terminal.write(line)
            guard Terminal.outputIsTerminal else { return }
            for row in QRCode.lines(line) ?? [] { Terminal.write(row) }
            Terminal.note("DIR is a folder of your choice there; good once, until \(invitation.expires.localText)")
        }
    }
}

/// What stands in the invitation's URL, before the port that the server knows, and is typed into a shell with it.
@Sendable private func parseHost(_ text: String) throws -> String {
    guard isHost(text) else {
        throw ValidationError("\"\(text)\" is no machine: a name such as box.local, or an IP address, without a port")
    }
    return text
}

private func isHost(_ text: String) -> Bool {
    var address = in6_addr()
    if text.contains(":") { return inet_pton(AF_INET6, text, &address) == 1 }
    let name = text.hasSuffix(".") ? text.dropLast() : text[...]
    return name.utf8.count <= 253
        && name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
            !label.isEmpty && label.utf8.count <= 63
                && label.allSatisfy { $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" }
        }
}

@Sendable func parseContainer(_ text: String) throws -> ContainerID {
    guard let id = ContainerID(text) else {
        throw ValidationError(
            "\"\(text)\" is no container: letters, digits, \".\", \"_\" and \"-\", 128 at most, no dot in front"
        )
    }
    return id
}
