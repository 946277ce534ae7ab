/// What a container says about which folders are packages by their names: extensions besides the usual ones, and extensions that are none.
///
/// Relative to the usual ones, so that a later version may know more of those. Somebody's word also counts where it changes nothing today:
/// that an extension is one, or is none, holds whatever another version finds usual.
package struct PackageDeclaration: Hashable, Sendable {
    /// The extended attribute by which a folder is a package whatever its name.
    package static let attribute = "user.ubiquity.package"
    /// Extensions of both kinds together: nobody has as many kinds of documents.
    package static let limit = 1000

    package private(set) var added: Set<String>
    package private(set) var removed: Set<String>

    /// Leaves out what is no extension in the form in which it is kept. One of both kinds is removed.
    package init(added: Set<String> = [], removed: Set<String> = []) {
        self.removed = removed.filter { Self.checked($0) == $0 }
        self.added = added.subtracting(self.removed).filter { Self.checked($0) == $0 }
    }

    package var count: Int { added.count + removed.count }
    package var isEmpty: Bool { count == 0 }

    /// - Parameter change: extensions that become packages or cease to be some; of the others nothing changes.
    package func applying(_ change: PackageDeclaration) -> PackageDeclaration {
        var result = self
        result.added.subtract(change.removed)
        result.added.formUnion(change.added)
        result.removed.subtract(change.added)
        result.removed.formUnion(change.removed)
        return result
    }

    /// - Returns: an extension in the form in which it is kept; `nil` for what is none.
    package static func checked(_ text: String) -> String? {
        let name = text.hasPrefix(".") ? text.dropFirst() : text[...]
        guard !name.isEmpty, name.utf8.count <= 64,
            !name.unicodeScalars.contains(where: { $0.value < 0x21 || (0x7F...0xA0).contains($0.value) }),
            !name.contains("/"), !name.contains(".")
        else { return nil }
        return lowercased(name.utf8)
    }

    /// Of ASCII letters only, so that it is the same everywhere.
    package static func lowercased(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }
}
