import ArgumentParser
import UbiquityControl

struct Download: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fetch the content of items, and of everything in folders."
    )

    @Argument(help: "Items in a mount.")
    var paths: [String]

    @Flag(help: "Do not wait for the content.")
    var noWait = false

    func run() throws {
        try conclude(try connectedService().send(about: paths) { DownloadRequest(paths: $0, waits: !noWait) })
    }
}

struct Evict: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Remove the local content of items and keep it in the cloud.",
        discussion:
            "Refused, with the reason, for what is not sent yet, open, pinned, linked more than once, or not surely in the cloud."
    )

    @Argument(help: "Items in a mount; of folders everything in them.")
    var paths: [String]

    func run() throws {
        let outcomes = try connectedService().send(about: paths) { EvictRequest(paths: $0) }
        var statuses = [ExitStatus]()
        for outcome in outcomes {
            if let error = outcome.error { Terminal.complain("\(error)") }
            let files = outcome.value ?? []
            for refusal in files.compactMap(\.refusal) { Terminal.complain("\(refusal)") }
            statuses.append(outcome.error?.status ?? ExitStatus.combining(files.map { $0.refusal?.status ?? .done }))
        }
        let status = ExitStatus.combining(statuses)
        if status != .done { throw Ended(status: status) }
    }
}

struct Pin: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Keep the content of items always here.")

    @Argument(help: "Items in a mount; of folders everything in them, now and later.")
    var paths: [String]

    func run() throws {
        try conclude(try connectedService().send(about: paths) { PinRequest(paths: $0, isPinned: true) })
    }
}

struct Unpin: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "No longer keep the content of items always here.")

    @Argument(help: "Items in a mount.")
    var paths: [String]

    func run() throws {
        try conclude(try connectedService().send(about: paths) { PinRequest(paths: $0, isPinned: false) })
    }
}

struct Sync: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Wait until everything local is in the cloud and everything known from the cloud is here.",
        discussion:
            "Exit code 75 at the time limit, at once offline, and for what waits for a person or a program; 1 for items in error."
    )

    @Option(help: "Seconds to wait at most.", transform: parseSeconds)
    var timeout: Double?

    func run() throws {
        _ = try connectedService().send(SyncRequest(timeoutSeconds: timeout))
    }
}

struct Activity: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Show what is being transferred.")

    @OptionGroup var output: OutputOptions

    func run() throws {
        let transfers = try connectedService().send(ActivityRequest())
        output.print(.array(transfers.map { TransferOutput.json($0) })) {
            for transfer in transfers { Terminal.write(TransferOutput.text(transfer)) }
        }
    }
}

struct Offline: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Switch airplane mode: nothing is sent or fetched.")

    enum Switch: String, ExpressibleByArgument, CaseIterable { case on, off }

    @Argument(help: "It stays as it is over restarts.")
    var mode: Switch

    func run() throws { _ = try connectedService().send(OfflineRequest(isOn: mode == .on)) }
}

@Sendable func parseSeconds(_ text: String) throws -> Double {
    guard let seconds = Double(text), seconds >= 0, seconds < TimeLimit.longestSeconds else {
        throw ValidationError("\"\(text)\" is no number of seconds")
    }
    return seconds
}
