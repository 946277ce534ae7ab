import Testing

@testable import DeviceService

@Suite struct MaterializationPolicyTests {
    typealias Verdict = MaterializationPolicy.Verdict

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The process first, then its ancestors. `python3 borg`: an interpreter and what it runs; `python3 ?`: not known yet;
        /// `(updatedb)`: only the kernel's name is known.
        let line: [String]
        var own: [String: MaterializationPolicy.Access] = [:]
        var isFinal = true
        let verdict: Verdict
    }

    private static func program(_ text: String) -> Program {
        if text.hasPrefix("(") { return Program(executable: nil, commandName: String(text.dropFirst().dropLast())) }
        let words = text.split(separator: " ").map(String.init)
        let path = words[0].hasPrefix("/") ? words[0] : "/usr/bin/" + words[0]
        guard words.count > 1 else { return Program(executable: path, commandName: "") }
        guard words[1].hasPrefix("?") else {
            return Program(executable: path, commandName: "", script: .named(words[1]))
        }
        return Program(executable: path, commandName: String(words[1].dropFirst()), script: .unread)
    }

    @Test(arguments: [
        Case(testDescription: "a program of a person", line: ["cat", "bash"], verdict: .allowed),
        Case(testDescription: "nobody", line: [], verdict: .allowed),
        Case(
            testDescription: "by name",
            line: ["updatedb.plocate", "systemd"],
            verdict: .denied(rule: "updatedb.plocate")
        ),
        Case(
            testDescription: "wherever it lies",
            line: ["/opt/x/libexec/tracker-extract-3"],
            verdict: .denied(rule: "tracker-extract-3")
        ),
        Case(testDescription: "a name is whole", line: ["updatedb2", "resticx", "xborg"], verdict: .allowed),
        Case(
            testDescription: "by how it ends",
            line: ["evince-thumbnailer"],
            verdict: .denied(rule: "evince-thumbnailer")
        ),
        Case(
            testDescription: "child of a denied one",
            line: ["gpg", "python3.11 /usr/bin/duplicity"],
            verdict: .denied(rule: "duplicity")
        ),
        Case(
            testDescription: "grandchild",
            line: ["cat", "xargs", "dash", "perl /usr/bin/rsnapshot", "cron", "systemd"],
            verdict: .denied(rule: "rsnapshot")
        ),
        Case(
            testDescription: "a plugin",
            line: ["kioworker /x/kf6/kio/thumbnail.so"],
            verdict: .denied(rule: "thumbnail.so")
        ),
        Case(testDescription: "another plugin", line: ["kioworker /x/kf6/kio/file.so", "dolphin"], verdict: .allowed),
        Case(
            testDescription: "an interpreter is not denied for others' sake",
            line: ["python3.11 notes.py"],
            verdict: .allowed
        ),
        Case(testDescription: "allowed by a person", line: ["restic"], own: ["restic": .allow], verdict: .allowed),
        Case(
            testDescription: "allowed by path only",
            line: ["/opt/restic"],
            own: ["/usr/bin/restic": .allow],
            verdict: .denied(rule: "restic")
        ),
        Case(
            testDescription: "this one allowed by path",
            line: ["restic"],
            own: ["/usr/bin/restic": .allow],
            verdict: .allowed
        ),
        Case(
            testDescription: "a path denied, the name not",
            line: ["/opt/cat"],
            own: ["/opt/cat": .deny],
            verdict: .denied(rule: "/opt/cat")
        ),
        Case(testDescription: "another one of that name", line: ["cat"], own: ["/opt/cat": .deny], verdict: .allowed),
        Case(
            testDescription: "the nearest decides: an allowed child",
            line: ["rsync", "perl rsnapshot"],
            own: ["rsync": .allow],
            verdict: .allowed
        ),
        Case(
            testDescription: "the nearest decides: a denied child of an allowed one",
            line: ["tumblerd", "bash"],
            own: ["bash": .allow],
            verdict: .denied(rule: "tumblerd")
        ),
        Case(
            testDescription: "a script says more than its interpreter",
            line: ["python3.11 borg"],
            own: ["python3.11": .allow],
            verdict: .denied(rule: "borg")
        ),
        Case(
            testDescription: "all of an interpreter",
            line: ["python3.11 any.py"],
            own: ["python3.11": .deny],
            verdict: .denied(rule: "python3.11")
        ),
        Case(
            testDescription: "a script by its path",
            line: ["dash /opt/scan"],
            own: ["/opt/scan": .deny],
            verdict: .denied(rule: "/opt/scan")
        ),
        Case(
            testDescription: "a person's ending",
            line: ["my-indexer"],
            own: ["*-indexer": .deny],
            verdict: .denied(rule: "my-indexer")
        ),
        Case(
            testDescription: "the longer ending decides",
            line: ["raw-thumbnailer"],
            own: ["*w-thumbnailer": .allow],
            verdict: .allowed
        ),
        Case(
            testDescription: "a default ending allowed",
            line: ["x-thumbnailer"],
            own: ["*-thumbnailer": .allow],
            verdict: .allowed
        ),
        Case(testDescription: "a script not read yet", line: ["cat", "python3 ?"], isFinal: false, verdict: .unread),
        Case(
            testDescription: "decided before that",
            line: ["updatedb", "bash ?"],
            isFinal: false,
            verdict: .denied(rule: "updatedb")
        ),
        Case(testDescription: "a script never read", line: ["cat", "bash ?"], verdict: .allowed),
        Case(
            testDescription: "a script never read whose name the kernel has",
            line: ["python3.11 ?borg"],
            verdict: .denied(rule: "borg")
        ),
        Case(testDescription: "another user's process", line: ["(updatedb)"], verdict: .denied(rule: "updatedb")),
        Case(
            testDescription: "another user's process with a long name",
            line: ["(urbackupclientb)"],
            verdict: .denied(rule: "urbackupclientbackend")
        ),
        Case(testDescription: "another user's process, unknown", line: ["(kworker/0:1)"], verdict: .allowed),
    ])
    func `the first of a line that a rule names decides`(example: Case) {
        let policy = MaterializationPolicy(own: example.own)
        #expect(policy.verdict(on: example.line.map(Self.program), isFinal: example.isFinal) == example.verdict)
    }

    @Test func `a thread's own name counts for nothing where the executable is known`() {
        let program = Program(executable: "/usr/bin/cat", commandName: "restic")
        #expect(MaterializationPolicy().verdict(on: [program], isFinal: true) == .allowed)
    }

    @Test(arguments: [
        "tracker-miner-fs-3", "tracker-extract-3", "localsearch-3", "localsearch-extractor-3", "baloo_file",
        "baloo_file_extractor", "updatedb", "updatedb.plocate", "recollindex", "tumblerd", "evince-thumbnailer",
        "totem-video-thumbnailer", "gdk-pixbuf-thumbnailer", "glycin-thumbnailer", "ffmpegthumbnailer", "restic",
        "borg",
        "duplicity", "rsnapshot", "bacula-fd", "bareos-fd", "duplicati", "deja-dup", "kopia", "timeshift", "clamscan",
        "clamd",
        "freshclam",
    ])
    func `the usual ones are denied by default, and can be allowed`(name: String) {
        let program = Program(executable: "/usr/libexec/" + name, commandName: "")
        #expect(MaterializationPolicy().verdict(on: [program], isFinal: false) == .denied(rule: name))
        #expect(MaterializationPolicy(own: [name: .allow]).verdict(on: [program], isFinal: false) == .allowed)
    }

    @Test(arguments: [
        "bash", "python3", "perl", "rsync", "tar", "rclone", "nautilus", "dolphin", "recoll", "git", "rg", "sshd",
    ])
    func `what people read and copy with is not`(name: String) {
        let program = Program(executable: "/usr/bin/" + name, commandName: "")
        #expect(MaterializationPolicy().verdict(on: [program], isFinal: true) == .allowed)
    }

    @Test func `the rules are the defaults and what was set, by name`() throws {
        let policy = MaterializationPolicy(own: ["restic": .allow, "mine": .deny])
        let rules = policy.rules
        #expect(rules.map(\.program) == rules.map(\.program).sorted())
        #expect(rules.count == MaterializationPolicy.defaults.count + 1)
        #expect(
            rules.first { $0.program == "restic" }
                == .init(program: "restic", access: .allow, kind: .backup, isOwn: true)
        )
        #expect(rules.first { $0.program == "mine" } == .init(program: "mine", access: .deny, kind: nil, isOwn: true))
        #expect(
            rules.first { $0.program == "borg" } == .init(program: "borg", access: .deny, kind: .backup, isOwn: false)
        )
    }
}
