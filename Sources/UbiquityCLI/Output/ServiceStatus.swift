import UbiquityControl

/// `status` without a path.
enum ServiceStatus {
    static func json(_ report: ServiceReport) -> JSONValue {
        let engines = report.mounts.compactMap(\.engine)
        return .object([
            ("service", .object([("pid", .integer(Int64(report.pid))), ("log", .string(report.log))])),
            ("account", .string(report.account)),
            ("device", .string(report.device)),
            (
                "server",
                .object([
                    ("url", .string(report.server)), ("embedded", .bool(report.serverIsEmbedded)),
                    ("connection", .optional(connection(report))),
                    ("problem", .optional(engines.compactMap(\.connectionProblem).first)),
                ])
            ),
            ("offline", .bool(report.isOffline)),
            ("driver", .optional(report.mounts.first { $0.engine != nil }?.mode)),
            ("pending", .count(engines.reduce(0) { $0 + $1.pending })),
            ("transfers", .array(engines.flatMap(\.transfers).map { TransferOutput.json($0) })),
            ("conflicts", .count(engines.reduce(0) { $0 + $1.conflicts })),
            ("held-deletions", .count(engines.reduce(0) { $0 + $1.heldDeletions })),
            ("problems", .array(engines.flatMap(\.problems).map { json($0) })),
            ("mounts", .array(report.mounts.map { json($0) })),
        ])
    }

    /// The worst of all containers.
    private static func connection(_ report: ServiceReport) -> String? {
        let all = report.mounts.compactMap { $0.engine?.connection }
        return all.first { $0 != "connected" } ?? all.first
    }

    private static func json(_ problem: ProblemReport) -> JSONValue {
        .object([("path", .path(problem.path)), ("reason", .string(problem.reason))])
    }

    private static func json(_ mount: MountReport) -> JSONValue {
        let engine = mount.engine
        func count(_ value: Int?) -> JSONValue { value.map { .count($0) } ?? .null }
        return .object([
            ("container", .string(mount.container)),
            ("mount-point", .path(mount.mountPoint)),
            ("state", .string(mount.state.rawValue)),
            ("failure", .optional(mount.failure)),
            ("driver", .optional(engine == nil ? nil : mount.mode)),
            ("connection", .optional(engine?.connection)),
            ("connection-problem", .optional(engine?.connectionProblem)),
            ("items", count(engine?.items)),
            ("pending", count(engine?.pending)),
            ("conflicts", count(engine?.conflicts)),
            ("conflict-bytes", engine?.conflictBytes.map { .integer($0) } ?? .null),
            ("largest-conflicts", .array((engine?.largestConflicts ?? []).map { json($0) })),
            ("held-deletions", count(engine?.heldDeletions)),
            ("bytes-sent", engine.map { .integer($0.bytesSent) } ?? .null),
            ("bytes-received", engine.map { .integer($0.bytesReceived) } ?? .null),
            ("keeping", engine?.keeping.map { KeepingOutput.json($0) } ?? .null),
            ("transfers", .array((engine?.transfers ?? []).map { TransferOutput.json($0) })),
            ("problems", .array((engine?.problems ?? []).map { json($0) })),
        ])
    }

    private static func json(_ item: ConflictSizeReport) -> JSONValue {
        .object([
            ("path", .path(item.path)), ("versions", .count(item.versions)), ("bytes", .integer(item.bytes)),
        ])
    }

    // MARK: - For people

    static func write(_ report: ServiceReport) {
        line("service", "running (pid \(report.pid)), log in \(report.log)")
        if report.mounts.contains(where: { $0.state == .signedOut }) {
            line("account", Terminal.styled(Terminal.plain("signed out of \(report.account)"), .red))
        } else {
            line("account", "\(report.account), this device is \(report.device)")
        }
        let place = report.serverIsEmbedded ? " (on this machine)" : ""
        line("server", "\(report.server)\(place)\(report.isOffline ? ", offline by `ubiquity offline on`" : "")")
        for mount in report.mounts { write(mount) }
        if report.mounts.isEmpty { line("mounts", "none; `ubiquity mount CONTAINER DIR` makes one") }
    }

    private static func write(_ mount: MountReport) {
        Terminal.write("")
        Terminal.write(Terminal.styled(Terminal.plain("\(mount.container) at \(mount.mountPoint)"), .bold))
        guard let engine = mount.engine else {
            let why = mount.failure ?? "just being mounted"
            line("state", Terminal.styled(Terminal.plain(why), mount.failure == nil ? .yellow : .red))
            return
        }
        if mount.state == .signedOut { return writeSignedOut(engine) }
        let problem = engine.connectionProblem.map { " (\($0))" } ?? ""
        let style: Terminal.Style = engine.connection == "connected" ? .green : .yellow
        line("connection", Terminal.styled(Terminal.plain("\(engine.connection)\(problem)"), style))
        line("driver", mount.mode)
        let waiting = engine.pending > 0 ? "\(engine.pending) changes on their way" : "nothing waits"
        line("items", "\(engine.items), \(waiting)")
        if engine.conflicts > 0 {
            let size = engine.conflictBytes.map { ", \(ByteCount.text($0))" } ?? ""
            line("conflicts", Terminal.styled("\(engine.conflicts)\(size); `ubiquity conflicts` lists them", .yellow))
            // One alone is named by what lists them.
            for item in engine.conflicts > 1 ? engine.largestConflicts ?? [] : [] {
                line("", "\(ByteCount.text(item.bytes)) in \(ShownPath.text(item.path))")
            }
        }
        if engine.heldDeletions > 0 {
            let text =
                "\(engine.heldDeletions) are held; `ubiquity deleted confirm` sends them, `ubiquity deleted undo` brings them back"
            line("deletions", Terminal.styled(text, .yellow))
        }
        if let keeping = engine.keeping {
            line("content", KeepingOutput.local(keeping))
            if let coming = KeepingOutput.coming(keeping) { line("to fetch", coming) }
        }
        for transfer in engine.transfers { line("transfer", TransferOutput.text(transfer)) }
        for problem in engine.problems {
            line("problem", Terminal.styled(Terminal.plain("\(ShownPath.text(problem.path)): \(problem.reason)"), .red))
        }
    }

    private static func writeSignedOut(_ engine: EngineReport) {
        let why = "signed out; sign in again to get your documents back, or `ubiquity down`"
        line("state", Terminal.styled(Terminal.plain(why), .red))
        let unsent = engine.pending == 1 ? "1 change has" : "\(engine.pending) changes have"
        line("items", engine.pending > 0 ? "\(unsent) not been sent" : "all changes have been sent")
    }

    private static func line(_ key: String, _ value: String) {
        Terminal.write(Terminal.styled(key + String(repeating: " ", count: max(1, 12 - key.count)), .dim) + value)
    }
}

enum KeepingOutput {
    static func json(_ keeping: KeepingReport) -> JSONValue {
        .object([
            ("local-bytes", .integer(keeping.localBytes)),
            ("local-limit", keeping.localLimit.map { .integer($0) } ?? .null),
            ("evict-after", .optional(keeping.evictAfter)),
            ("download", .string(keeping.isGreedy ? "greedy" : "on-demand")),
            ("missing-files", .count(keeping.missingFiles)),
            ("missing-bytes", .integer(keeping.missingBytes)),
            ("obstacle", .optional(keeping.obstacle)),
        ])
    }

    static func local(_ keeping: KeepingReport) -> String {
        var text = "\(ByteCount.text(keeping.localBytes)) here"
        if let limit = keeping.localLimit { text += ", of \(ByteCount.text(limit)) at most" }
        if let span = keeping.evictAfter, !keeping.isGreedy { text += ", for \(span) after it was last used" }
        return text
    }

    /// What everything that comes by itself is not here yet.
    static func coming(_ keeping: KeepingReport) -> String? {
        guard keeping.isGreedy else { return nil }
        guard keeping.missingFiles > 0 else { return "nothing, all is here" }
        let files = keeping.missingFiles == 1 ? "1 file" : "\(keeping.missingFiles) files"
        let why = keeping.obstacle.map { "; not now: \($0)" } ?? ""
        return "\(files), \(ByteCount.text(keeping.missingBytes))\(why)"
    }
}

enum TransferOutput {
    static func json(_ transfer: TransferReport) -> JSONValue {
        .object([
            ("path", .path(transfer.path)),
            ("direction", .string(transfer.direction)),
            ("bytes-done", .integer(transfer.bytesDone)),
            ("bytes-total", .integer(transfer.bytesTotal)),
        ])
    }

    static func text(_ transfer: TransferReport) -> String {
        "\(transfer.direction) \(ByteCount.text(transfer.bytesDone)) of \(ByteCount.text(transfer.bytesTotal))  \(ShownPath.text(transfer.path))"
    }
}
