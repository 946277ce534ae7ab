internal import Glibc

/// A line of /proc/self/mountinfo: what is mounted where.
package struct MountInfo: Sendable, Hashable {
    package var mountPoint: [UInt8]
    /// `ext4`, `fuse.ubiquity`, …
    package var type: String
    package var source: String

    /// Ours are mounted with this type.
    package static let ubiquityType = "fuse.ubiquity"

    package var isUbiquity: Bool { type == Self.ubiquityType }

    /// The topmost mount at exactly this path.
    package static func mounted(at path: [UInt8]) -> MountInfo? { all().last { $0.mountPoint == path } }

    package static func all() -> [MountInfo] {
        // The table of a machine with thousands of mounts is still far below this.
        parse(ProcessTable.read("/proc/self/mountinfo", limit: 1 << 23) ?? [])
    }

    package static func parse(_ text: [UInt8]) -> [MountInfo] {
        text.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let fields = line.split(separator: UInt8(ascii: " "))
            // ID PARENT DEVICE ROOT POINT OPTIONS [TAGS…] - TYPE SOURCE SUPER-OPTIONS
            guard fields.count > 6, let dash = fields.dropFirst(6).firstIndex(where: { $0.elementsEqual("-".utf8) }),
                fields.count > dash + 2
            else { return nil }
            return MountInfo(
                mountPoint: unescaped(fields[4]),
                type: String(decoding: fields[dash + 1], as: UTF8.self),
                source: String(decoding: unescaped(fields[dash + 2]), as: UTF8.self)
            )
        }
    }

    /// Blanks, tabs, line feeds and backslashes are written as `\` and three octal digits.
    private static func unescaped(_ field: ArraySlice<UInt8>) -> [UInt8] {
        var result = [UInt8]()
        var rest = field
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            if byte == UInt8(ascii: "\\"), digits.count == 3,
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 8)
            {
                result.append(value)
                rest = rest.dropFirst(3)
            } else {
                result.append(byte)
            }
        }
        return result
    }
}
