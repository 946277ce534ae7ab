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

    package init(_ declaration: PackageDeclaration) {
        extensions = Self.usual.union(declaration.added).subtracting(declaration.removed)
    }

    /// - Returns: an extension in the form in which it is kept; `nil` for what is none.
    package static func checked(_ text: String) -> String? { PackageDeclaration.checked(text) }

    package func isPackage(_ name: Name) -> Bool {
        guard let dot = name.bytes.lastIndex(of: UInt8(ascii: ".")), dot > 0, dot < name.bytes.count - 1 else {
            return false
        }
        return extensions.contains(PackageDeclaration.lowercased(name.bytes[(dot + 1)...]))
    }
}
