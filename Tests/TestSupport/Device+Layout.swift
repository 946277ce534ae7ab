// Where a device and a server keep what is theirs: the tests look behind the mount, at the disk.
extension Device {
    /// The backing tree of the device's container.
    package func backingTree() throws -> String {
        let found = try Site.find(in: home, named: "tree", type: "d")
        guard let tree = found.first else { throw TestFailure("\(name) has no backing tree") }
        return tree
    }

    package func backing(_ item: String) throws -> String {
        try backingTree() + "/" + item
    }

    /// What the device knows of its container's items.
    package func stateDatabase() throws -> String {
        let found = try Site.find(in: home, named: "state.sqlite", type: "f")
        guard let database = found.first else { throw TestFailure("\(name) has no state database") }
        return database
    }

    /// Where the embedded server keeps catalogue and packs.
    package var serverFolder: String { home + "/server" }

    /// The files in which the embedded server keeps chunks: everything of it but the catalogue.
    package func packs() throws -> [String] {
        try succeed("find", serverFolder + "/", "-xdev", "-type", "f", "-name", "*.pack").output
            .split(separator: "\n").map(String.init)
    }

    /// Bytes of content that the embedded server holds.
    package func storedBytes() throws -> Int64 {
        try packs().reduce(0) { try $0 + Files.size($1) }
    }

    private func succeed(_ words: String...) throws -> Command.Result {
        let result = try Command(words).wait()
        guard result.isSuccess else { throw TestFailure("\(result)") }
        return result
    }
}

extension Site {
    /// Paths below a folder, without crossing into mounts, the shortest first.
    static func find(in folder: String, named name: String, type: String) throws -> [String] {
        try succeed("find", folder, "-xdev", "-type", type, "-name", name).output
            .split(separator: "\n").map(String.init).sorted { ($0.count, $0) < ($1.count, $1) }
    }
}
