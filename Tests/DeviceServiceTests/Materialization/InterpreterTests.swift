import Testing

@testable import DeviceService

@Suite struct InterpreterTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let executable: String
        /// The command line, with blanks between words.
        let line: String
        let script: String?

        init(_ executable: String, _ line: String, _ script: String?) {
            (self.executable, self.line, self.script) = (executable, line, script)
        }

        var testDescription: String { line }
    }

    @Test(arguments: [
        Case("/usr/bin/python3.11", "/usr/bin/python3 /usr/bin/borg create", "/usr/bin/borg"),
        Case("/usr/bin/python3.11", "python3 -I -W ignore -m borgmatic.commands --list", "borgmatic.commands"),
        Case("/usr/bin/python3.11", "python3 -Im duplicity", "duplicity"),
        Case("/usr/bin/python3.11", "python3 -mduplicity full", "duplicity"),
        Case("/usr/bin/python3.11", "python3 -c print() restic", nil),
        Case("/usr/bin/python3.11", "python3 - restic", nil),
        Case("/usr/bin/python3.11", "python3", nil),
        Case("/usr/bin/pypy3", "pypy3 scan.py", "scan.py"),
        Case("/usr/bin/perl", "/usr/bin/perl -w /usr/bin/rsnapshot daily", "/usr/bin/rsnapshot"),
        Case("/usr/bin/perl5.36.0", "perl -I lib -MFoo=bar -i.bak -T a.pl", "a.pl"),
        Case("/usr/bin/perl", "perl -lne print a.pl", nil),
        Case("/usr/bin/bash", "-bash", nil),
        Case("/usr/bin/bash", "bash -euo pipefail scan.sh x", "scan.sh"),
        Case("/usr/bin/bash", "bash --rcfile other --norc -- scan.sh", "scan.sh"),
        Case("/usr/bin/bash", "bash -euo pipefail -c scan.sh", nil),
        Case("/usr/bin/dash", "/bin/sh /etc/cron.daily/mlocate", "/etc/cron.daily/mlocate"),
        Case("/usr/bin/dash", "/bin/sh -ec scan", nil),
        Case("/usr/bin/ruby3.1", "ruby -r set -Ilib backup.rb", "backup.rb"),
        Case("/usr/bin/node", "node --require x.js -r y.js --max-old-space-size=9 index.js", "index.js"),
        Case(
            "/usr/bin/mono-sgen",
            "mono --debug /usr/lib/duplicati/Duplicati.Server.exe",
            "/usr/lib/duplicati/Duplicati.Server.exe"
        ),
        Case("/usr/lib/jvm/bin/java", "java -Xmx1g -cp a.jar:b.jar -jar areca.jar", "areca.jar"),
        Case("/usr/lib/jvm/bin/java", "java -cp a.jar com.example.Main", "com.example.Main"),
        Case(
            "/usr/lib/libexec/kf6/kioworker",
            "kioworker /usr/lib/plugins/kf6/kio/thumbnail.so thumbnail",
            "/usr/lib/plugins/kf6/kio/thumbnail.so"
        ),
        Case(
            "/usr/lib/libexec/kf5/kioslave5",
            "kioslave5 /usr/lib/plugins/kf5/kio/file.so file",
            "/usr/lib/plugins/kf5/kio/file.so"
        ),
        Case("/bin/busybox", "/bin/busybox updatedb", "updatedb"),
        Case("/bin/busybox", "/usr/bin/updatedb -x", "updatedb"),
        Case("/bin/busybox", "busybox", nil),
    ])
    func `what an interpreter runs`(example: Case) throws {
        let interpreter = try #require(Interpreter(executable: example.executable))
        #expect(interpreter.script(in: example.line.split(separator: " ").map(String.init)) == example.script)
        #expect(interpreter.script(in: []) == nil)
    }

    @Test(arguments: ["/usr/bin/cat", "/usr/bin/pythonista", "/usr/bin/shred", "/usr/bin/perldoc", "/opt/updatedb", ""])
    func `other programs are what they are`(executable: String) {
        #expect(Interpreter(executable: executable) == nil)
    }
}
