import Replica
import UbiquityModel

/// Remembers which parts of a dataless file are here, across opens and restarts. Only what is on the disk is written down.
enum RangeStore {
    static func save(_ file: PlaceholderFile, in replica: Replica) throws {
        let placeholder = file.placeholder
        let ranges = try file.synchronize()
        guard !ranges.ranges.isEmpty, !file.isWhole, !file.isDiscarded else { return }
        guard let row = try row(file.key, placeholder.revision, replica) else { return }
        try replica.database.write(ranges: ranges, row.id, placeholder)
        // It became whole meanwhile, or was given up.
        if file.isWhole || file.isDiscarded { try replica.database.removeRanges([row.id]) }
    }

    static func load(_ key: InodeKey, _ placeholder: Placeholder, from replica: Replica) -> ByteRangeSet {
        // Nothing known is always a right answer: it is fetched again.
        guard let row = try? row(key, placeholder.revision, replica),
            let ranges = try? replica.database.ranges(row.id, placeholder)
        else { return ByteRangeSet() }
        return ranges
    }

    private static func row(_ key: InodeKey, _ revision: RevisionID, _ replica: Replica) throws -> SyncedItem? {
        try replica.database.synced(key: key).first { row in
            if case .file(let file) = row.content { return file.revision == revision }
            return false
        }
    }
}
