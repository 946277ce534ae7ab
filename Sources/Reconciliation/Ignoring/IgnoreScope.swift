package import UbiquityModel

/// The rules that hold in a folder: those of its own `.ubiquityignore` and of those above it. A deeper file decides before one above it; in
/// a folder that is ignored, everything is, and what a file there says does not count.
package struct IgnoreScope: Sendable {
    /// From the root to the folder, with a slash after each name.
    private var path: [UInt8]
    private var files: [File]
    /// Why the folder itself is ignored.
    package private(set) var reason: LocalOnly.Reason?

    private struct File: Sendable {
        var rules: IgnoreRules
        /// Bytes of the path up to its folder.
        var start: Int
    }

    /// Without any rules.
    package static let root = IgnoreScope(path: [], files: [], reason: nil)

    /// Of a folder in this one, before its own file is known.
    package func entering(_ name: Name) -> IgnoreScope {
        IgnoreScope(
            path: path + name.bytes + [UInt8(ascii: "/")],
            files: files,
            reason: reason(for: name, isFolder: true)
        )
    }

    /// The folder's own file.
    package mutating func add(_ rules: IgnoreRules) {
        guard reason == nil, !rules.isEmpty else { return }
        files.append(File(rules: rules, start: path.count))
    }

    /// For people: where the folder's own file is.
    package var file: String { String(decoding: path + IgnoreRules.name.bytes, as: UTF8.self) }

    /// Why something in the folder is ignored; `nil`: it is not.
    package func reason(for name: Name, isFolder: Bool) -> LocalOnly.Reason? {
        if let reason { return reason }
        guard !files.isEmpty else { return nil }
        let item = path + name.bytes
        for file in files.reversed() {
            let pattern = file.rules.decisive(
                for: item[file.start...],
                name: item[path.count...],
                isFolder: isFolder
            )
            guard let pattern else { continue }
            guard !pattern.isNegated else { return nil }
            let folder = String(decoding: path[..<file.start], as: UTF8.self)
            return .ignored(
                file: folder + IgnoreRules.name.description,
                line: pattern.line,
                pattern: String(decoding: pattern.text, as: UTF8.self)
            )
        }
        return nil
    }
}
