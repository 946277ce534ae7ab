import Glibc

// What the tests ask of a device about its items. The keys of `--json` that they rely on are all here.
extension Device {
    // MARK: - Files in the mount

    package func write(_ text: String, to item: String) throws {
        try Files.write(text, to: path(item))
    }

    package func write(_ bytes: [UInt8], to item: String) throws {
        try Files.write(bytes, to: path(item))
    }

    package func text(_ item: String) throws -> String {
        try Files.text(path(item))
    }

    package func names(_ folder: String = "") throws -> [String] {
        try Files.names(in: path(folder))
    }

    package func exists(_ item: String) -> Bool {
        Files.exists(path(item))
    }

    /// Waits until an item is in the mount with these bytes.
    package func waitForText(_ text: String, in item: String, within limit: Duration = .seconds(20)) throws {
        var last = "nothing"
        try eventually("\(name): \(item) contains \"\(text)\" (it had \(last))", within: limit) {
            guard exists(item) else { return false }
            last = try self.text(item)
            return last == text
        }
    }

    package func waitForAbsence(of item: String, within limit: Duration = .seconds(20)) throws {
        try eventually("\(name): \(item) is gone", within: limit) { !exists(item) }
    }

    // MARK: - States

    package func status(of item: String) throws -> JSON {
        let status = try json("status", path(item))
        guard let first = status.elements.first else { throw TestFailure("\(name): no status of \(item)") }
        return first
    }

    /// `current`, `dataless`, `waiting`, …
    package func state(of item: String) throws -> String {
        let status = try status(of: item)
        guard let state = status["state"]?.string else { throw TestFailure("\(name): no state of \(item): \(status)") }
        return state
    }

    package func waitForState(_ expected: Set<String>, of item: String, within limit: Duration = .seconds(20)) throws {
        var last = ""
        try eventually("\(name): \(item) is \(expected.sorted()) (it was \(last))", within: limit) {
            last = try state(of: item)
            return expected.contains(last)
        }
    }

    package func localBytes(of item: String) throws -> Int64 {
        guard let bytes = try status(of: item)["local-bytes"]?.integer else {
            throw TestFailure("no local-bytes of \(item)")
        }
        return bytes
    }

    /// Makes an item dataless that is in the cloud.
    package func evict(_ item: String) throws {
        try succeed("evict", path(item))
    }

    // MARK: - Versions

    package struct Version: Sendable, Hashable {
        package var id: String
        /// `current`, `conflict` or `saved`.
        package var kind: String
        package var size: Int64
    }

    package func versions(of item: String) throws -> [Version] {
        try json("versions", path(item)).elements.map { version in
            guard let id = version["id"]?.string, let kind = version["kind"]?.string,
                let size = version["size"]?.integer
            else {
                throw TestFailure("a version without id, kind or size: \(version)")
            }
            return Version(id: id, kind: kind, size: size)
        }
    }

    package func conflictVersions(of item: String) throws -> [Version] {
        try versions(of: item).filter { $0.kind == "conflict" }
    }

    package func content(ofVersion id: String, of item: String) throws -> String {
        try succeed("versions", "show", path(item), id).output
    }

    /// Paths of the items with unresolved conflicts, as `ubiquity conflicts` names them.
    package func conflicts() throws -> [String] {
        try json("conflicts").elements.compactMap { $0["path"]?.string }
    }
}
