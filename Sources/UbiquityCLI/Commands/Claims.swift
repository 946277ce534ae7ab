import ArgumentParser
import UbiquityControl

struct Claims: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Show who holds claims and who waits.")

    @OptionGroup var output: OutputOptions

    func run() throws {
        let claims = try connectedService().send(ClaimsRequest())
        output.print(.array(claims.map { Self.json($0) })) {
            var table = TextTable("STATE", "PID", "PROGRAM", "ITEMS")
            for claim in claims {
                let items = claim.items.map { "\($0.isWrite ? "write" : "read") \(ShownPath.text($0.path))" }
                let waits = claim.waitsFor.isEmpty ? "" : "; \(claim.waitsFor.joined(separator: ", "))"
                table.add(
                    claim.isGranted ? "held" : "waiting",
                    "\(claim.pid)",
                    claim.program,
                    items.joined(separator: ", ") + waits
                )
            }
            table.write()
        }
    }

    private static func json(_ claim: ClaimReport) -> JSONValue {
        .object([
            ("state", .string(claim.isGranted ? "held" : "waiting")),
            ("pid", .integer(Int64(claim.pid))),
            ("program", .string(claim.program)),
            (
                "items",
                .array(
                    claim.items.map { item in
                        .object([("path", .path(item.path)), ("access", .string(item.isWrite ? "write" : "read"))])
                    }
                )
            ),
            ("waits-for", .array(claim.waitsFor.map { .string($0) })),
        ])
    }
}
