/// A path inside a container, as names from its root. Empty is the root itself.
package struct ItemPath: Hashable, Sendable, Comparable {
    package var names: [Name]

    package init(_ names: [Name] = []) { self.names = names }

    /// Parses a relative path; empty components and `.` are dropped, `..` is refused.
    package init(parsing text: String) throws(NameError) {
        var names = [Name]()
        for component in text.utf8.split(separator: UInt8(ascii: "/")) where Array(component) != [UInt8(ascii: ".")] {
            names.append(try Name(bytes: Array(component)))
        }
        self.names = names
    }

    package static let root = ItemPath()

    package var isRoot: Bool { names.isEmpty }
    package var last: Name? { names.last }
    package var parent: ItemPath { ItemPath(Array(names.dropLast())) }
    package func appending(_ name: Name) -> ItemPath { ItemPath(names + [name]) }

    /// Whether this is `ancestor` or lies below it.
    package func isInside(_ ancestor: ItemPath) -> Bool { names.starts(with: ancestor.names) }

    /// The deepest that both are or lie below.
    package func common(with other: ItemPath) -> ItemPath {
        ItemPath(zip(names, other.names).prefix { $0 == $1 }.map(\.0))
    }

    /// The same path after `old` has become `new`; unchanged when it does not lie inside `old`.
    package func moved(from old: ItemPath, to new: ItemPath) -> ItemPath {
        isInside(old) ? ItemPath(new.names + names.dropFirst(old.names.count)) : self
    }

    package var bytes: [UInt8] { Array(names.map(\.bytes).joined(separator: [UInt8(ascii: "/")])) }

    package static func < (left: Self, right: Self) -> Bool { left.names.lexicographicallyPrecedes(right.names) }
}

extension ItemPath: CustomStringConvertible {
    package var description: String { String(decoding: bytes, as: UTF8.self) }
}
