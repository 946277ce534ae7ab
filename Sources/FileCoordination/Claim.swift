package import UbiquityModel

/// A claim or a waiting open, from its request to its end. The numbers grow: they are the order of arrival.
package struct ClaimID: Hashable, Sendable, Comparable, LosslessStringConvertible {
    package let number: UInt64

    package init(number: UInt64) { self.number = number }

    /// As in `UBIQUITY_CLAIM`.
    package init?(_ description: String) {
        guard let number = UInt64(description) else { return nil }
        self.number = number
    }

    package var description: String { "\(number)" }
    package static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}

/// One thread of control that coordinates: a connection on the control socket. It never waits for itself. A program that
/// coordinates from several threads has a connection for each.
package struct PartyID: Hashable, Sendable, Comparable {
    package let number: UInt64

    package init(number: UInt64) { self.number = number }

    package static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}

package enum ClaimAccess: String, Hashable, Sendable, CaseIterable {
    case read, write

    /// The table of semantics section 6: only readers go together.
    package func excludes(_ other: ClaimAccess) -> Bool { self == .write || other == .write }
}

/// What a coordinator adds to a read or a write (semantics section 6), by the names of the command line.
package enum ClaimOption: String, Hashable, Sendable, CaseIterable {
    case withoutChanges = "without-changes"
    case metadataOnly = "metadata-only"
    case resolveSymlinks = "resolve-symlinks"
    case forUploading = "for-uploading"
    case forDeleting = "for-deleting"
    case forMoving = "for-moving"
    case forMerging = "for-merging"
    case forReplacing = "for-replacing"

    package func applies(to access: ClaimAccess) -> Bool {
        switch self {
        case .metadataOnly: true
        case .withoutChanges, .resolveSymlinks, .forUploading: access == .read
        case .forDeleting, .forMoving, .forMerging, .forReplacing: access == .write
        }
    }

    /// Whether a write claim with it covers all that lies below its item.
    fileprivate var coversSubtree: Bool {
        switch self {
        case .forDeleting, .forMoving, .forReplacing: true
        case .withoutChanges, .metadataOnly, .resolveSymlinks, .forUploading, .forMerging: false
        }
    }
}

/// An item, by the container it is in and its path of the moment.
package struct ClaimTarget: Hashable, Sendable {
    package var container: ContainerID
    package var path: ItemPath

    package init(container: ContainerID, path: ItemPath) {
        self.container = container
        self.path = path
    }
}

/// What a claim, an open or a change is about: an item, or an item with all below it. A folder by itself is its list of entries.
package struct ClaimArea: Hashable, Sendable {
    package var target: ClaimTarget
    package var coversSubtree: Bool

    /// - Parameter package: the package that the item is or lies in: then the area is the whole package.
    package init(_ target: ClaimTarget, coversSubtree: Bool = false, package: ItemPath? = nil) {
        self.target = package.map { ClaimTarget(container: target.container, path: $0) } ?? target
        self.coversSubtree = coversSubtree || package != nil
    }

    package func overlaps(_ other: ClaimArea) -> Bool {
        guard target.container == other.target.container else { return false }
        return target.path == other.target.path
            || (coversSubtree && other.target.path.isInside(target.path))
            || (other.coversSubtree && target.path.isInside(other.target.path))
    }

    mutating func move(from old: ClaimTarget, to new: ItemPath) { target.move(from: old, to: new) }
}

extension ClaimTarget {
    mutating func move(from old: ClaimTarget, to new: ItemPath) {
        guard container == old.container else { return }
        path = path.moved(from: old.path, to: new)
    }
}

/// One item of a request.
package struct ClaimItem: Hashable, Sendable {
    package var access: ClaimAccess
    package var options: Set<ClaimOption>
    /// Follows the item when it is moved; a granted claim passes its path of the moment.
    package internal(set) var target: ClaimTarget
    package internal(set) var area: ClaimArea

    /// - Parameter package: the package that the item is or lies in, if it does.
    package init(_ access: ClaimAccess, _ target: ClaimTarget, options: Set<ClaimOption> = [], package: ItemPath? = nil)
    {
        self.access = access
        self.options = options
        self.target = target
        let coversSubtree = access == .write && options.contains { $0.coversSubtree }
        area = ClaimArea(target, coversSubtree: coversSubtree, package: package)
    }
}

/// What an explicit coordinator asks for: several items, all or none.
package struct ClaimRequest: Hashable, Sendable {
    package var party: PartyID
    /// For people: the program and the process that ask.
    package var program: String
    package var pid: Int32
    /// Claims of the same purpose never block one another.
    package var purpose: String?
    /// The claim in whose name this one is asked (`UBIQUITY_CLAIM`, or a batch): it is not waited for.
    package var within: ClaimID?
    package var items: [ClaimItem]
    /// How long it may wait; `nil`: for ever.
    package var timeout: Duration?

    package init(
        party: PartyID,
        program: String,
        pid: Int32,
        purpose: String? = nil,
        within: ClaimID? = nil,
        items: [ClaimItem],
        timeout: Duration?
    ) {
        self.party = party
        self.program = program
        self.pid = pid
        self.purpose = purpose
        self.within = within
        self.items = items
        self.timeout = timeout
    }
}

/// An ordinary program, which takes part without knowing it.
package struct ClaimProgram: Hashable, Sendable {
    package var pid: Int32
    package var name: String
    /// The claims that it belongs to: that in its environment, else those of its process and of the processes that it descends
    /// from. Nothing that it does waits for them, nor do they wait for it.
    package var within: Set<ClaimID>

    package init(pid: Int32, name: String, within: Set<ClaimID> = []) {
        self.pid = pid
        self.name = name
        self.within = within
    }
}

/// A file that an ordinary program has open for writing: a writer until it is closed.
package struct ProgramWriter: Hashable, Sendable {
    package var area: ClaimArea
    package var program: ClaimProgram

    package init(area: ClaimArea, program: ClaimProgram) {
        self.area = area
        self.program = program
    }
}

/// What the table cannot know by itself, as it is when an event happens.
package struct ClaimSituation: Sendable {
    /// Since any fixed moment; never goes back.
    package var now: Duration
    /// All files that programs have open for writing, in all containers.
    package var writers: [ProgramWriter]

    package init(now: Duration, writers: [ProgramWriter]) {
        self.now = now
        self.writers = writers
    }
}
