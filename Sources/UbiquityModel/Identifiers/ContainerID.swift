/// A container's identifier: `[A-Za-z0-9._-]{1,128}`, not starting with a dot (semantics section 1).
package struct ContainerID: Hashable, Sendable, Comparable, CustomStringConvertible {
    package let text: String

    package init?(_ text: String) {
        let allowed = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
                return true
            default: return false
            }
        }
        guard allowed, (1...128).contains(text.utf8.count), !text.hasPrefix(".") else { return nil }
        self.text = text
    }

    private init(unchecked text: String) { self.text = text }

    /// The container that `up` and `join` mount.
    package static let documents = ContainerID(unchecked: "Documents")

    package var description: String { text }
    package static func < (left: Self, right: Self) -> Bool { left.text < right.text }
}
