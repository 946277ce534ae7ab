import TestSupport
import Testing

extension MountTests {
    /// A container that holds no two names which differ in case only (semantics section 3).
    @Suite struct CaseTests {
        private static let container = "org.example.cased"

        /// Two devices, and where each has mounted the container.
        private func pair(_ site: Site) throws -> [(device: Device, folder: String)] {
            let (a, b) = try site.pair()
            try a.succeed("container", "create", Self.container, "--case-insensitive")
            let listed = try a.json("container", "list").elements.first { $0["id"]?.string == Self.container }
            #expect(listed?["case-insensitive"]?.isTrue == true)
            return try [a, b].map { device in
                let folder = site.folder + "/cased-" + device.name
                try Files.makeFolder(folder)
                try device.succeed("mount", Self.container, folder)
                return (device, folder)
            }
        }

        private func refused(_ device: Device, _ folder: String, _ script: String) throws {
            let result = try device.startShell("cd \(folder); LC_ALL=C \(script)").wait(.seconds(20))
            #expect(!result.isSuccess && result.errors.contains("File exists"), "\(script): \(result)")
        }

        @Test func `the second of two such names is EEXIST, whoever has made the first`() async throws {
            try await withSite { site in
                let pair = try pair(site)
                let (a, first) = pair[0]
                let (b, second) = pair[1]
                try a.shell("cd \(first); mkdir Docs; echo 1 > Docs/Straße; echo 2 > Docs/other; ln -s x Docs/Link")
                for script in [
                    "mkdir docs", "dd status=none if=/dev/null of=Docs/STRASSE conv=excl",
                    "dd status=none if=/dev/null of=Docs/STRASSE",
                    "mv -T Docs/other DOCS", "ln Docs/other Docs/LINK", "ln -s y docs", "mkfifo docs",
                ] {
                    try refused(a, first, script)
                }
                // Its own name may change its case, and be written anew.
                try a.shell(
                    """
                    cd \(first); mv Docs/other Docs/Other; mv Docs/Other Docs/other
                    echo 3 > Docs/.new; mv Docs/.new Docs/Straße; mv Docs DOCS
                    rm DOCS/Link; mkdir DOCS/link; rmdir DOCS/link; echo 4 > DOCS/LINK
                    """
                )
                try a.sync()
                try b.sync()
                #expect(try Files.names(in: second) == ["DOCS"])
                // There nothing but names is here so far, and at first not even those.
                try refused(b, second, "mkdir Docs/new docs")
                try refused(b, second, "mkdir DOCS/strasse")
                try refused(b, second, "mv -T DOCS/other DOCS/STRASSE")
                #expect(try Files.names(in: second + "/DOCS").sorted() == ["LINK", "Straße", "other"])
                #expect(try Files.text(second + "/DOCS/Straße") == "3\n")
            }
        }

        @Test func `two devices that make such names apart get a second name for the later one`() async throws {
            try await withSite { site in
                let pair = try pair(site)
                for (device, _) in pair { try device.succeed("offline", "on") }
                try pair[0].device.shell("cd \(pair[0].folder); mkdir Docs; echo a > Docs/f; echo a > Notes.txt")
                try pair[1].device.shell(
                    "cd \(pair[1].folder); mkdir docs; echo b > docs/g; echo b > NOTES.TXT; echo b > 'notes 2.txt'"
                )
                for (device, _) in pair {
                    try device.succeed("offline", "off")
                    try device.sync()
                }
                try pair[0].device.sync()
                for (device, folder) in pair {
                    let names = try Files.names(in: folder).sorted()
                    #expect(
                        names == ["Docs", "NOTES 3.TXT", "Notes.txt", "docs 2", "notes 2.txt"],
                        "on \(device.name)"
                    )
                    #expect(try Files.text(folder + "/docs 2/g") == "b\n")
                    #expect(try Files.text(folder + "/Notes.txt") == "a\n")
                }
            }
        }
    }
}
