import Replica
import Synchronization
import UbiquityModel

/// The chunks of a package's content, of which the index and each file have some by themselves.
struct PackageChunks: Sendable {
    private let entries: [Manifest.Entry]
    /// The entry that begins at an offset, and how many there are for the end.
    private let starts: [Int64: Int]
    /// Of the whole content, in bytes.
    let size: Int64

    init(_ manifest: Manifest) {
        entries = manifest.entries
        var starts: [Int64: Int] = [:]
        starts.reserveCapacity(entries.count + 1)
        var offset: Int64 = 0
        for (number, entry) in entries.enumerated() {
            starts[offset] = number
            offset += Int64(entry.length)
        }
        starts[offset] = entries.count
        self.starts = starts
        size = offset
    }

    /// For people, of a content with which that is not so: what would be fetched of a file is nothing, or of another one as well.
    static let areOthers = "what lies in the package does not begin and end where its chunks do"

    /// `nil` if no chunk begins, or ends, there.
    func part(from offset: Int64, size: Int64) -> ArraySlice<Manifest.Entry>? {
        let (end, overflow) = offset.addingReportingOverflow(size)
        guard !overflow, size >= 0, let first = starts[offset], let last = starts[end] else { return nil }
        return entries[first..<last]
    }

    /// The same with where each is in the part.
    func index(from offset: Int64, size: Int64) -> [ChunkIndex.Entry]? {
        part(from: offset, size: size).map { ChunkIndex(Manifest(entries: Array($0))).entries }
    }

    /// Bytes that the disk has to have for a file.
    /// - Parameter hole: the chunk of nothing but zeros, which takes none.
    func roomNeeded(from offset: Int64, size: Int64, hole: ChunkID) -> Int64 {
        guard let part = part(from: offset, size: size) else { return size }
        return part.reduce(0) { $0 + ($1.chunk == hole ? 0 : Int64($1.length)) }
    }

    /// Whether the index, and each file in it, begins and ends where a chunk does, as it was when the package was read.
    func areThose(of index: PackageIndex) -> Bool {
        part(from: 0, size: Int64(index.encoded.count)) != nil && index.contentSize == size
            && index.files.allSatisfy { part(from: $0.offset, size: $0.element.size) != nil }
    }
}

/// Those of the packages that are being read: each of their files asks for them.
final class PackageChunksCache: Sendable {
    private static let limit = 4

    /// Memory work only, the oldest first; a leaf in the order of locks.
    private let known = Mutex<[(revision: RevisionID, chunks: PackageChunks)]>([])

    /// `nil`: the manifest is needed.
    func chunks(of revision: RevisionID) -> PackageChunks? {
        known.withLock { $0.first { $0.revision == revision } }?.chunks
    }

    func chunks(of revision: RevisionID, _ manifest: Manifest) -> PackageChunks {
        if let found = chunks(of: revision) { return found }
        let chunks = PackageChunks(manifest)
        known.withLock { known in
            if known.count == Self.limit { known.removeFirst() }
            known.append((revision, chunks))
        }
        return chunks
    }
}
