import CloudClient
import TestSupport
import UbiquityControl
import UbiquityModel

@testable import DeviceService

/// The control socket's lines, JSON files, and what the kernel says of processes and mounts.
extension FuzzTarget {
    private static let json = [
        "{", "}", "[", "]", "\"", ":", ",", "null", "true", "-1", "1e999", "1e300", "18446744073709551616", "\\u0000",
        "\\ud800",
        "\"base64\"", "0.5", "[[[[[[[[[[[[[[[[", "{\"a\":{\"a\":{\"a\":",
    ]

    static let control: [FuzzTarget] = [
        FuzzTarget("a request", cost: 4, words: json) { arbitrary in
            let path = ControlPath(bytes: arbitrary.bytes(5))
            let item = ItemArgument(typed: path, path: ControlPath("/a/b"), target: path)
            switch arbitrary.below(10) {
            case 0: return try line(ItemStatusRequest(paths: [item]))
            case 1: return try line(SyncRequest(timeoutSeconds: 30))
            case 2:
                return try line(
                    ClaimRequest(
                        items: [.init(path: item, isWrite: true)],
                        options: ["for-moving"],
                        timeoutSeconds: 1,
                        outer: "7",
                        program: "p"
                    )
                )
            case 3:
                return try line(
                    MountRequest(container: "Documents", mountPoint: path, createsContainer: true, imports: false)
                )
            case 4: return try line(StopRequest(forgetsMounts: true, refusesWriters: false))
            case 5: return try line(SetPolicyRequest(programs: ["restic"], access: .allow))
            case 6: return try line(UndeleteRequest(items: ["ab"]))
            case 7: return try line(VersionContentRequest(path: item, version: "ab"))
            case 8: return try line(PackagesRequest(container: "Documents", added: ["foo"], removed: []))
            default: return try line(DownloadRequest(paths: [item, item], waits: true))
            }
        } check: { bytes in
            try request(bytes)
        },
        FuzzTarget("an answer", cost: 3, words: json) { arbitrary in
            switch arbitrary.below(4) {
            case 0: try ControlCoding.encode(ProgressReply(ControlProgress("a", done: 1, total: 2, unit: .bytes)))
            case 1: try ControlCoding.encode(ErrorReply(ControlError(.tryAgain, "a", "b", remedy: "c")))
            case 2:
                try ControlCoding.encode(
                    ResultReply(
                        DeletedReport(id: "", container: "", path: "", deleted: 1, device: "", kind: "", size: 1)
                    )
                )
            default: try ControlCoding.encode(ResultReply([VersionReport(try arbitrary.version())]))
            }
        } check: { bytes in
            var count = 0
            if decoded(ReplyHead.self, bytes) != nil { count += 1 }
            if let reply = decoded(ProgressReply.self, bytes) { count += reply.progress.activity.isEmpty ? 0 : 1 }
            if let reply = decoded(ErrorReply.self, bytes) {
                try promise(!reply.error.description.contains("\n"), "an error of several lines")
                count += 1
            }
            if decoded(ResultReply<[VersionReport]>.self, bytes) != nil { count += 1 }
            if decoded(ResultReply<DeletedReport>.self, bytes) != nil { count += 1 }
            return count > 0
        },
        FuzzTarget("lines", words: ["\n", "\n\n"]) { _ in
            Array("one\ntwo\n\nthree\nfour".utf8)
        } check: { bytes in
            let whole = lines(bytes, pieces: max(1, bytes.count))
            try promise(whole == lines(bytes, pieces: 1 + bytes.count % 5), "pieces make a difference")
            return !whole.isEmpty
        },
        FuzzTarget(
            "a file of ours",
            cost: 60,
            words: json + ["\"format\"", "\"settings\"", "\"claim-limit\"", "\"rules\""]
        ) {
            arbitrary in
            switch arbitrary.below(4) {
            case 0:
                var table = MountTable()
                let path = ControlPath(bytes: arbitrary.bytes(4))
                table.entries = [.init(container: "Documents", mountPoint: path, options: ["ro"], isImporting: true)]
                return try ControlCoding.encodePretty(table)
            case 1:
                var file = SettingsFile()
                try file.set(.claimLimit, to: "45s")
                return try ControlCoding.encodePretty(file)
            case 2:
                var file = PolicyFile()
                file.set(.deny, for: "restic")
                return try ControlCoding.encodePretty(file)
            default:
                let credentials = Credentials(
                    url: "https://host:1",
                    certificate: "pem",
                    fingerprint: arbitrary.bytes(32),
                    account: "me",
                    device: arbitrary.identifier(),
                    deviceName: "device",
                    token: arbitrary.bytes(32),
                    nonce: arbitrary.bytes(16)
                )
                let containers = ["Documents"].compactMap { ContainerID($0) }.map {
                    ContainerInfo(
                        id: $0,
                        key: arbitrary.bytes(32),
                        layout: .drive,
                        isCaseInsensitive: false,
                        isReadOnly: false,
                        packages: arbitrary.packages()
                    )
                }
                let account = Account(credentials: credentials, containers: containers, serverIsEmbedded: false)
                return try ControlCoding.encodePretty(account)
            }
        } check: { bytes in
            try file(bytes)
        },
        FuzzTarget("a process", words: ["(", ")", " ", "-1", "99999999999"]) { arbitrary in
            Array("7 (a \(arbitrary.text())) S 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 12345 9 9".utf8)
        } check: { bytes in
            ProcessTable.parse(bytes) != nil
        },
        FuzzTarget("mounts", words: ["\\040", "\\999", "\\", " - ", " ", "\n"]) { _ in
            Array(
                "36 35 98:0 /r /mnt\\0402 rw master:1 - fuse.ubiquity Documents rw\n25 1 8:1 / / rw - ext4 /dev/sda rw"
                    .utf8
            )
        } check: { bytes in
            !MountInfo.parse(bytes).isEmpty
        },
        FuzzTarget("a command line", words: ["\u{0}", "-", "--", "-c", "-m", "-jar", "/"]) { arbitrary in
            Array(
                arbitrary.pick([
                    "python3\u{0}-Im\u{0}x", "bash\u{0}-euo\u{0}pipefail\u{0}/a", "java\u{0}-cp\u{0}a\u{0}-jar\u{0}b",
                ]).utf8
            )
        } check: { bytes in
            let words = bytes.split(separator: 0, omittingEmptySubsequences: false).map {
                String(decoding: $0, as: UTF8.self)
            }
            let found = ["python3", "bash", "java", "busybox", "perl"].compactMap {
                Interpreter(executable: $0)?.script(in: words)
            }
            return !found.isEmpty
        },
    ]

    private static func decoded<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]) -> Value? {
        accepted(ControlError.self) { () throws(ControlError) in try ControlCoding.decode(type, from: bytes) }
    }

    private static func line(_ request: some ControlRequest) throws -> [UInt8] {
        try ControlCoding.encode(RequestEnvelope(request))
    }

    private static func request(_ bytes: [UInt8]) throws -> Bool {
        guard let head = decoded(RequestHead.self, bytes) else { return false }
        func same<Request: ControlRequest>(_: Request.Type) throws -> Request? {
            guard head.verb == Request.verb, let envelope = decoded(RequestEnvelope<Request>.self, bytes) else {
                return nil
            }
            let once = try ControlCoding.encode(envelope)
            let again = try ControlCoding.encode(try ControlCoding.decode(RequestEnvelope<Request>.self, from: once))
            try promise(once == again, "\(String(decoding: once, as: UTF8.self)) became another request")
            return envelope.arguments
        }
        let limits = [try same(SyncRequest.self)?.timeoutSeconds, try same(ClaimRequest.self)?.timeoutSeconds]
        for seconds in limits {
            _ = accepted(ControlError.self) { () throws(ControlError) in try TimeLimit.duration(seconds: seconds) }
        }
        if let request = try same(ItemStatusRequest.self) {
            for item in request.paths { _ = item.path.relative(to: item.typed) }
        }
        _ = try same(MountRequest.self)
        _ = try same(StopRequest.self)
        _ = try same(SetPolicyRequest.self)
        _ = try same(UndeleteRequest.self)
        _ = try same(VersionContentRequest.self)
        _ = try same(DownloadRequest.self)
        _ = try same(PackagesRequest.self)
        return true
    }

    private static func file(_ bytes: [UInt8]) throws -> Bool {
        try FuzzFolder.with { folder in
            let home = try HomeDirectories(home: folder)
            for path in [home.accountFile, home.mountsFile, home.settingsFile, home.policyFile] {
                try Files.write(bytes, to: path)
            }
            var count = 0
            if let account = accepted(ControlError.self, { () throws(ControlError) in try Account.load(home) }) {
                count += account?.containers.compactMap(\.info).count ?? 0
            }
            if var table = accepted(ControlError.self, { () throws(ControlError) in try MountTable.load(home) }) {
                table.signOut([])
                count += 1
            }
            if let settings = accepted(
                ControlError.self,
                { () throws(ControlError) in
                    try SettingsFile.load(home).settings()
                }
            ) {
                try promise(settings.claimLimit >= .zero, "a limit of \(settings.claimLimit)")
                count += 1
            }
            if var policy = accepted(ControlError.self, { () throws(ControlError) in try PolicyFile.load(home) }) {
                let before = policy.policy.rules
                policy.set(.allow, for: "another")
                try policy.save(home)
                let after = try PolicyFile.load(home).policy.rules.filter { $0.program != "another" }
                try promise(after == before.filter { $0.program != "another" }, "other rules")
                count += 1
            }
            return count > 0
        }
    }

    private static func lines(_ bytes: [UInt8], pieces: Int) -> [[UInt8]] {
        var buffer = LineBuffer(limit: 1000)
        var lines = [[UInt8]]()
        var rest = bytes[...]
        while !rest.isEmpty {
            buffer.append(rest.prefix(pieces))
            rest = rest.dropFirst(pieces)
            while let line = buffer.next() { lines.append(line) }
        }
        return lines
    }
}
