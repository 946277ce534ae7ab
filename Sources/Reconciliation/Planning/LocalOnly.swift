package import UbiquityModel

/// What stays on this device (semantics section 1): by its name alone, or since a `.ubiquityignore` says so.
package enum LocalOnly {
    package enum Reason: Hashable, Sendable {
        case noSync
        case trash
        case openUnlinked
        case sharedMemoryOfDatabase
        case reservedName
        /// By the pattern in a line of a `.ubiquityignore`.
        case ignored(file: String, line: Int, pattern: String)

        /// For people, after "not sent: ".
        package var description: String {
            switch self {
            case .noSync: "its name, or a folder's above it, ends in .nosync"
            case .trash: "the trash stays on this device"
            case .openUnlinked: "a leftover of a deleted file that is still open"
            case .sharedMemoryOfDatabase: "shared memory of a database that is open here"
            case .reservedName: "the name .versions is reserved at the top"
            case .ignored(let file, let line, let pattern): "ignored by \(file), line \(line): \(pattern)"
            }
        }
    }

    package static func reason(for path: ItemPath) -> Reason? {
        for (depth, name) in path.names.enumerated() {
            if let reason = reason(for: name, isAtRoot: depth == 0) { return reason }
        }
        return nil
    }

    /// Of a name alone, wherever the folder is.
    package static func reason(for name: Name, isAtRoot: Bool) -> Reason? {
        let bytes = name.bytes
        // Asked for every entry of a listing: nearly all names are out of the question.
        guard bytes.first == UInt8(ascii: ".") || bytes.last.map({ $0 | 0x20 }) == UInt8(ascii: "c") else { return nil }
        if lowercased(bytes.suffix(7)) == Array(".nosync".utf8) { return .noSync }
        if bytes.starts(with: ".fuse_hidden".utf8) { return .openUnlinked }
        if isAtRoot, bytes.starts(with: ".Trash-".utf8) { return .trash }
        if isAtRoot, bytes == Array(".versions".utf8) { return .reservedName }
        return nil
    }

    /// `X` for `X-shm`, which is never sent beside `X`; for `X-wal` and `X-journal` see `databaseCompanions`.
    package static func databaseOfSharedMemory(_ name: Name) -> Name? { stem(of: name, without: "-shm") }

    /// `X-shm` for `X`; `nil` if that were too long for a name.
    package static func sharedMemory(of database: Name) -> Name? {
        try? Name(bytes: database.bytes + Array("-shm".utf8))
    }

    /// The files that SQLite keeps beside a database: while one is there, the database goes only when it has been quiet.
    package static func databaseCompanions(of name: Name) -> [Name] {
        ["-wal", "-journal"].compactMap { try? Name(bytes: name.bytes + Array($0.utf8)) }
    }

    /// `X` for `X-wal` and `X-journal`.
    package static func databaseOfCompanion(_ name: Name) -> Name? {
        stem(of: name, without: "-wal") ?? stem(of: name, without: "-journal")
    }

    private static func stem(of name: Name, without suffix: String) -> Name? {
        let suffix = Array(suffix.utf8)
        guard name.bytes.count > suffix.count, name.bytes.suffix(suffix.count).elementsEqual(suffix) else { return nil }
        return try? Name(bytes: Array(name.bytes.dropLast(suffix.count)))
    }

    private static func lowercased(_ bytes: some Collection<UInt8>) -> [UInt8] {
        bytes.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 + 32 : $0 }
    }
}
