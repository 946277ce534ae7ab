package import UbiquityModel

/// What a `.ubiquityignore` says: what is new in its folder, or below, and has such a name is not sent (semantics section 1). The grammar
/// is that of gitignore(5), over bytes.
package struct IgnoreRules: Hashable, Sendable {
    private static let fileName = Array(".ubiquityignore".utf8)

    /// Of every file with rules.
    package static let name = {
        guard let name = try? Name(bytes: fileName) else { preconditionFailure("sixteen letters are a name") }
        return name
    }()

    package static func isName(_ name: Name) -> Bool { name.bytes == fileName }

    /// Bytes of a file. A larger one means nothing.
    package static let largestFile = 1 << 20

    private let patterns: [IgnorePattern]

    /// A file that is not there.
    package static let none = IgnoreRules([])

    package init(_ file: [UInt8]) {
        let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let text = file.starts(with: byteOrderMark) ? file.dropFirst(byteOrderMark.count) : file[...]
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        patterns = lines.enumerated().compactMap { index, line in
            // The last line may lack its end, and is none if it has nothing else either.
            let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            return IgnorePattern(line, line: index + 1)
        }
    }

    package var isEmpty: Bool { patterns.isEmpty }

    /// The pattern that decides, which is the last one that fits: on this item alone, whatever is said of the folders above it.
    func decisive(for path: ArraySlice<UInt8>, name: ArraySlice<UInt8>, isFolder: Bool) -> IgnorePattern? {
        patterns.last { $0.matches(path, name: name, isFolder: isFolder) }
    }
}
