import ArgumentParser
import CLinux
import Dispatch
import Glibc
import UbiquityControl

struct Coordinate: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a command while claims on items are held.",
        discussion: """
            Other coordinators, the sync engine and programs that open the items wait meanwhile. The command finds the first item's \
            path in UBIQUITY_ITEM, all in UBIQUITY_ITEM_1, UBIQUITY_ITEM_2, …, and the claim in UBIQUITY_CLAIM; its exit code is \
            this one's. Exit code 75 if the claims are not granted in time.
            Options: for reading without-changes, metadata-only, resolve-symlinks; for writing for-deleting, for-moving, \
            for-merging, for-replacing, metadata-only.
            """
    )

    static let usualTimeoutSeconds = 30.0

    @Option(help: ArgumentHelp("Claim an item for reading (may be repeated).", valueName: "path"))
    var read: [String] = []

    @Option(help: ArgumentHelp("Claim an item for writing (may be repeated).", valueName: "path"))
    var write: [String] = []

    @Option(
        name: .customLong("option"),
        help: ArgumentHelp("What is going to happen (may be repeated).", valueName: "name")
    )
    var options: [String] = []

    @Option(help: ArgumentHelp("Seconds to wait at most; `none` waits for ever (default: 30).", valueName: "seconds"))
    var timeout: String?

    @Argument(parsing: .postTerminator, help: "The command to run, after `--`.")
    var command: [String] = []

    func validate() throws {
        guard !read.isEmpty || !write.isEmpty else {
            throw ValidationError("nothing to claim: name --read PATH or --write PATH")
        }
        guard !command.isEmpty else { throw ValidationError("no command to run: it comes after --") }
        _ = try limit()
    }

    func run() throws {
        let client = try connectedService()
        let words = command.map { ArgumentBytes.decode($0) }
        let grant = try client.send(
            ClaimRequest(
                items: try items(),
                options: options,
                timeoutSeconds: try limit(),
                outer: getenv("UBIQUITY_CLAIM").map { String(cString: $0) },
                program: String(decoding: words[0].split(separator: UInt8(ascii: "/")).last ?? [], as: UTF8.self)
            )
        )
        let code = try ForegroundCommand.run(words, adding: variables(grant))
        do throws(ControlError) { _ = try client.send(ReleaseClaimsRequest()) } catch {
            Terminal.complain("coordinate: the device service ended while the command ran: the claims were lost")
        }
        throw CommandExit(code: code)
    }

    private func variables(_ grant: ClaimRequest.Answer) -> [(String, [UInt8])] {
        var result = [("UBIQUITY_CLAIM", Array(grant.claim.utf8))]
        if let first = grant.paths.first { result.append(("UBIQUITY_ITEM", first.bytes)) }
        for (index, path) in grant.paths.enumerated() { result.append(("UBIQUITY_ITEM_\(index + 1)", path.bytes)) }
        return result
    }

    private func limit() throws -> Double? {
        guard let timeout else { return Self.usualTimeoutSeconds }
        return timeout == "none" ? nil : try parseSeconds(timeout)
    }

    /// In the order in which they were typed, which the parser does not keep between two options.
    private func items() throws(ControlError) -> [ClaimRequest.Item] {
        var reads = read[...]
        var writes = write[...]
        var result = [ClaimRequest.Item]()
        for isWrite in ClaimOrder.isWrite(CommandWords.own) {
            guard let word = isWrite ? writes.popFirst() : reads.popFirst() else { continue }
            result.append(ClaimRequest.Item(path: try ItemArgument(word: word), isWrite: isWrite))
        }
        return result
    }
}

/// Finds the order of `--read` and `--write` among the program's words.
enum ClaimOrder {
    static func isWrite(_ words: [String]) -> [Bool] {
        var result = [Bool]()
        var rest = words.prefix { $0 != "--" }
        while let word = rest.popFirst() {
            switch word {
            case "--read", "--write":
                result.append(word == "--write")
                _ = rest.popFirst()
            case "--option", "--timeout": _ = rest.popFirst()
            default:
                if word.hasPrefix("--read=") { result.append(false) }
                if word.hasPrefix("--write=") { result.append(true) }
            }
        }
        return result
    }
}

/// Runs a command as a shell does: the terminal's signals are its own, those sent to us are passed on.
enum ForegroundCommand {
    /// - Returns: its exit code; 128 and the signal's number if one ended it; 126 or 127 if it cannot be started.
    static func run(_ words: [[UInt8]], adding variables: [(String, [UInt8])]) throws(ControlError) -> Int32 {
        // From the keyboard they reach the whole group of processes; the command decides what they mean.
        signal(SIGINT, SIG_IGN)
        signal(SIGQUIT, SIG_IGN)
        let child: pid_t
        do throws(ControlError) { child = try Subcommand.start(words, adding: variables) } catch {
            Terminal.complain("\(error)")
            return error.why == systemMessage(ENOENT) ? 127 : 126
        }
        let sources = [SIGTERM, SIGHUP].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { kill(child, number) }
            source.resume()
            return source
        }
        defer { for source in sources { source.cancel() } }
        return clinux_wait_child(child)
    }
}
