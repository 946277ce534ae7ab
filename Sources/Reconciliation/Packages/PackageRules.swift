package import UbiquityModel

/// Which folders are packages by their names (semantics section 5): those that end in an extension which the container declares.
package struct PackageRules: Hashable, Sendable {
    /// What a container declares unless it says something else: folders that their programs show as one document.
    package static let usual: Set<String> = [
        "band", "fcpbundle", "graffle", "imovielibrary", "key", "logicx", "note", "numbers", "pages", "photoslibrary",
        "playground", "rtfd", "scriv", "sparsebundle", "textbundle", "xcodeproj", "xcworkspace",
    ]

    /// Without the dot, in lower case.
    package var extensions: Set<String>

    package init(extensions: Set<String> = Self.usual) { self.extensions = extensions }

    /// - Returns: an extension in the form in which it is kept; `nil` for what is none.
    package static func checked(_ text: String) -> String? {
        let name = text.hasPrefix(".") ? text.dropFirst() : text[...]
        guard !name.isEmpty, name.utf8.count <= 64, !name.utf8.contains(where: { $0 < 0x21 || $0 == 0x7F }),
            !name.contains("/"), !name.contains(".")
        else { return nil }
        return lowercased(name.utf8)
    }

    package func isPackage(_ name: Name) -> Bool {
        guard let dot = name.bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0, dot < name.bytes.count - 1 else {
            return false
        }
        return extensions.contains(Self.lowercased(name.bytes[(dot + 1)...]))
    }

    /// Of ASCII letters only, so that it is the same everywhere.
    private static func lowercased(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }
}
