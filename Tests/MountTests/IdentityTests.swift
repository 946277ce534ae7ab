import TestSupport
import Testing

extension MountTests {
    /// Names that change hands: what programs do to them comes out on both devices as it does on an ordinary disk.
    @Suite struct IdentityTests {
        struct Scenario: CustomTestStringConvertible, Sendable {
            var testDescription: String
            var script: String
            /// Needs the bytes of what it touches.
            var reads = false
        }

        static let scenarios = [
            Scenario(testDescription: "a file over another", script: "mv f g"),
            Scenario(testDescription: "a file to a name just freed", script: "rm g; mv f g"),
            Scenario(testDescription: "a backup made by renaming", script: "mv f f.bak; echo new > f"),
            Scenario(testDescription: "a hard link", script: "ln f h"),
            Scenario(testDescription: "files that swap names", script: "mv f t; mv g f; mv t g"),
            Scenario(testDescription: "three files in a circle", script: "mv f t; mv g f; mv d/x g; mv t d/x"),
            Scenario(testDescription: "folders that swap names", script: "mv d t; mv e d; mv t e"),
            Scenario(testDescription: "a new folder of an old name", script: "mv d was; mkdir d; echo new > d/x"),
            Scenario(testDescription: "a folder in another's place", script: "mv d e/old; mv n d"),
            Scenario(testDescription: "a folder around itself", script: "mv d t; mkdir d; mv t d/inner"),
            Scenario(testDescription: "a file that becomes a folder", script: "rm f; mkdir f; echo inside > f/inside"),
            Scenario(
                testDescription: "a folder at the name of a file that went over another",
                script: "mv d/x d/y; mkdir d/x; echo inside > d/x/inside",
                reads: true
            ),
            Scenario(
                testDescription: "an edit in place, then a new name",
                script: "printf X | dd of=f conv=notrunc status=none; mv f h",
                reads: true
            ),
            Scenario(
                testDescription: "an edit in place, then time and mode",
                script: "printf X | dd of=f conv=notrunc status=none; touch -d @1000000000 f; chmod 600 f",
                reads: true
            ),
        ]

        @Test(arguments: scenarios, ["whole", "dataless"])
        func `comes out as on an ordinary disk`(scenario: Scenario, content: String) async throws {
            for isOffline in scenario.reads && content == "dataless" ? [false] : [false, true] {
                try await withSite { site in
                    let (a, b) = try site.pair()
                    let setUp = "mkdir d e n; for i in f g d/x d/y e/x e/z n/x; do echo \"content of $i\" > $i; done"
                    let plain = site.outside + "/plain"
                    try Files.makeFolder(plain)
                    try shell(setUp, in: [plain, a.mountPoint])
                    try a.sync()
                    try b.sync()
                    // B has seen no content yet.
                    let (here, there) = content == "whole" ? (a, b) : (b, a)
                    if isOffline { try here.setOffline(true) }
                    try shell(scenario.script, in: [plain, here.mountPoint])
                    if isOffline { try here.setOffline(false) }
                    try here.sync()
                    try there.sync()
                    try here.sync()
                    let expected = try listing(plain)
                    let (mine, theirs) = (try listing(here.mountPoint), try listing(there.mountPoint))
                    #expect(mine == expected, "where it was done, offline: \(isOffline)")
                    #expect(theirs == expected, "on the other device, offline: \(isOffline)")
                    #expect(try a.conflicts() == [])
                }
            }
        }

        /// Pass by pass, while names are changing: a file was taken for deleted, or replaced by the one with which it was swapped.
        @Test func `a hundred swaps of files that are not here lose none of them`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                let plain = site.outside + "/plain"
                try Files.makeFolder(plain)
                try shell(
                    "for i in $(seq 100 199); do echo one $i > f$i; echo two $i > g$i; done",
                    in: [plain, a.mountPoint]
                )
                try a.sync()
                try b.sync()
                try shell(
                    "for i in $(seq 100 199); do mv f$i t$i; mv g$i f$i; mv t$i g$i; done",
                    in: [plain, b.mountPoint]
                )
                try b.sync()
                try a.sync()
                let expected = try listing(plain)
                #expect(try listing(a.mountPoint) == expected)
                #expect(try listing(b.mountPoint) == expected)
                #expect(try a.conflicts() == [])
            }
        }

        @Test(arguments: ["whole", "dataless"])
        func `what is moved to where nothing is sent from goes with its content`(content: String) async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir d private.nosync; echo 1 > f; echo 2 > d/x")
                try a.sync()
                try b.sync()
                let (here, there) = content == "whole" ? (a, b) : (b, a)
                try here.shell("mkdir -p private.nosync; mv f d private.nosync/")
                try there.waitForAbsence(of: "f")
                try there.waitForAbsence(of: "d")
                try here.sync()
                #expect(try here.text("private.nosync/f") == "1\n")
                #expect(try here.text("private.nosync/d/x") == "2\n")
            }
        }

        @Test func `a temporary file that was renamed over its target never comes back`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.write("start", to: "target")
                try a.sync()
                try a.shell(
                    "for i in $(seq 300); do echo $i > target.tmp; [ $((i % 7)) = 0 ] && sleep 0.01; mv target.tmp target; done"
                )
                try a.sync()
                try b.sync()
                for device in [a, b] {
                    #expect(try device.names() == ["target"])
                    #expect(try device.text("target") == "300\n")
                    #expect(try device.conflicts() == [])
                }
            }
        }

        @Test func `what others make in a folder that is not synced any more brings it back beside`() async throws {
            try await withSite { site in
                let (a, b) = try site.pair()
                try a.shell("mkdir -p d/e; echo one > d/e/x")
                try a.sync()
                try b.waitForText("one\n", in: "d/e/x")
                try a.setOffline(true)
                try b.setOffline(true)
                try a.shell("mkdir q.nosync; mv d q.nosync/")
                try b.shell("echo two > d/e/y")
                try a.setOffline(false)
                try a.sync()
                try b.setOffline(false)
                try b.sync()
                try a.sync()
                #expect(try a.text("q.nosync/d/e/x") == "one\n")
                #expect(try a.text("d/e/y") == "two\n")
                #expect(try b.text("d/e/y") == "two\n")
                #expect(try b.names() == ["d"])
            }
        }

        /// The same in each folder.
        private func shell(_ script: String, in folders: [String]) throws {
            for folder in folders { try TestSupport.succeed("bash", "-ec", "cd '\(folder)'; \(script)") }
        }

        private func listing(_ folder: String) throws -> String {
            let script = "cd '\(folder)' && find . | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum"
            return try TestSupport.succeed("bash", "-c", script).output
        }
    }
}
