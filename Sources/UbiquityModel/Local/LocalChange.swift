/// What a program did to an item.
package struct LocalChange: Hashable, Sendable {
    package struct Aspects: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Bytes were written. Reported once until `Mount.collectDirty`.
        package static let content = Aspects(rawValue: 1)
        /// Times, mode or extended attributes.
        package static let attributes = Aspects(rawValue: 2)
        /// A name appeared, vanished or moved, or stands for another inode.
        package static let entry = Aspects(rawValue: 4)
        /// The last writable handle was released.
        package static let closed = Aspects(rawValue: 8)
    }

    package var aspects: Aspects
    package var parent: InodeKey
    package var name: Name
    /// The inode that the name stands for now, or that it stood for if it vanished.
    package var key: InodeKey?
    package var movedFrom: (parent: InodeKey, name: Name)?
    /// The inode from which the move took the name.
    package var replaced: InodeKey?
    /// The inode may have further names. False only where that is known.
    package var mayHaveOtherNames: Bool
    package var isFolder: Bool

    package init(
        aspects: Aspects,
        parent: InodeKey,
        name: Name,
        key: InodeKey?,
        movedFrom: (parent: InodeKey, name: Name)? = nil,
        replaced: InodeKey? = nil,
        mayHaveOtherNames: Bool = true,
        isFolder: Bool
    ) {
        self.aspects = aspects
        self.parent = parent
        self.name = name
        self.key = key
        self.movedFrom = movedFrom
        self.replaced = replaced
        self.mayHaveOtherNames = mayHaveOtherNames
        self.isFolder = isFolder
    }

    /// Takes in what was done next, if it was done to the same inode at the same place.
    /// - Returns: false if it is a change by itself.
    package mutating func absorb(_ next: LocalChange) -> Bool {
        guard key == next.key, name == next.name, parent == next.parent, isFolder == next.isFolder else { return false }
        guard movedFrom == nil, next.movedFrom == nil, replaced == nil, next.replaced == nil else { return false }
        aspects.formUnion(next.aspects)
        mayHaveOtherNames = mayHaveOtherNames || next.mayHaveOtherNames
        return true
    }

    /// `mayHaveOtherNames` is a hint, and no part of what was done.
    package static func == (left: Self, right: Self) -> Bool {
        left.aspects == right.aspects && left.parent == right.parent && left.name == right.name && left.key == right.key
            && left.movedFrom?.parent == right.movedFrom?.parent && left.movedFrom?.name == right.movedFrom?.name
            && left.replaced == right.replaced && left.isFolder == right.isFolder
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(aspects)
        hasher.combine(parent)
        hasher.combine(name)
    }
}
