internal import Glibc
internal import Synchronization
internal import UbiquityModel

/// Records that the disk gave back as something else, or not at all, when they were last examined: whoever has such a chunk is to bring it
/// anew, and nobody is to give it up because it is here.
///
/// They are noted in a file beside the packs: a server that starts again would take them for whole, and the last good copy would be given
/// up. Its name has the format version: older programs leave it alone. An entry:
///
///     bytes  0..<8   number of the pack, big-endian, as the two that follow
///            8..<16  offset of the record
///           16..<20  length of the record
///           20..<52  chunk id
///
/// A record that turned out whole again keeps its entry: after a start it is looked at once more.
final class DamagedRecords: Sendable {
    private struct End: Hashable {
        var pack: UInt64
        var end: UInt64
    }

    private struct Note {
        var record: ChunkRequest
        var isDamaged: Bool
    }

    private struct State {
        /// Those that have an entry, or should have one.
        var notes: [End: Note] = [:]
        /// How many entries the file has room for: each gets its place here, and is written there outside of the lock.
        var entries: UInt64 = 0
    }

    private static let name = "damaged-1"
    private static let entryBytes = 52
    private static let entriesAtOnce = 4096

    private let folder: String
    private let path: String
    /// A leaf: no system call is made under it.
    private let state: Mutex<State>

    /// To be called by who has the folder to itself.
    init(folder: String) {
        self.folder = folder
        path = "\(folder)/\(Self.name)"
        state = Mutex(Self.load(path))
    }

    /// The location is one that has been read: its end is no overflow. Blocks on the disk for what is new.
    func note(_ record: ChunkRequest, _ isDamaged: Bool) {
        let location = record.location
        let end = End(pack: location.pack, end: location.offset + UInt64(location.length))
        let place = state.withLock { state -> UInt64? in
            guard isDamaged else {
                if !state.notes.isEmpty { state.notes[end]?.isDamaged = false }
                return nil
            }
            let isNoted = state.notes[end]?.record == record
            state.notes[end] = Note(record: record, isDamaged: true)
            guard !isNoted else { return nil }
            defer { state.entries += 1 }
            return state.entries
        }
        if let place { write(record, at: place) }
    }

    /// Blocks on no disk: it is asked within the catalogue's transactions.
    subscript(pack: UInt64, endingAt end: UInt64) -> ChunkRequest? {
        state.withLock { state in
            guard !state.notes.isEmpty, let note = state.notes[End(pack: pack, end: end)], note.isDamaged else {
                return nil
            }
            return note.record
        }
    }

    // MARK: The file

    private func write(_ record: ChunkRequest, at place: UInt64) {
        do throws(ChunkStoreError) {
            let file = try OpenFile(path, flags: O_WRONLY | O_CREAT)
            try file.write(Self.encoded(record), at: place * UInt64(Self.entryBytes))
            try file.synchronize()
            // The first one has made the file.
            if place == 0 { try OpenFile(folder, flags: O_RDONLY | O_DIRECTORY).synchronize() }
        } catch {
            // A disk that is dying may be full as well, or not take anything any more: it is known until the store is opened again, and
            // found out anew by who examines it then.
        }
    }

    /// What can be read: a file that cannot is no reason to serve nothing. Half an entry, which a crash leaves, is overwritten by the next.
    private static func load(_ path: String) -> State {
        var state = State()
        guard let file = try? OpenFile(path, flags: O_RDONLY), let size = try? file.size() else { return state }
        state.entries = size / UInt64(entryBytes)
        var offset: UInt64 = 0
        while let bytes = try? file.read(entryBytes * entriesAtOnce, at: offset), bytes.count >= entryBytes {
            for start in stride(from: 0, through: bytes.count - entryBytes, by: entryBytes) {
                guard let record = decoded(bytes[start..<start + entryBytes]) else { continue }
                let end = record.location.offset + UInt64(record.location.length)
                state.notes[End(pack: record.location.pack, end: end)] = Note(record: record, isDamaged: true)
            }
            offset += UInt64(bytes.count / entryBytes * entryBytes)
        }
        return state
    }

    private static func encoded(_ record: ChunkRequest) -> [UInt8] {
        var bytes: [UInt8] = []
        func append(_ value: some FixedWidthInteger) {
            withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
        }
        append(record.location.pack)
        append(record.location.offset)
        append(record.location.length)
        bytes.append(contentsOf: record.chunk.bytes)
        return bytes
    }

    /// `nil` for what is no place in a pack: an entry that was not written, between others.
    private static func decoded(_ bytes: ArraySlice<UInt8>) -> ChunkRequest? {
        func number(_ range: Range<Int>) -> UInt64 {
            bytes.dropFirst(range.lowerBound).prefix(range.count).reduce(0) { $0 << 8 | UInt64($1) }
        }
        let (offset, length) = (number(8..<16), number(16..<20))
        guard length > UInt64(PackRecord.headerBytes), length <= UInt64(PackRecord.longest),
            offset <= UInt64(Int64.max) - length, let chunk = ChunkID(bytes: bytes.suffix(32))
        else { return nil }
        let location = ChunkLocation(pack: number(0..<8), offset: offset, length: UInt32(length))
        return ChunkRequest(chunk: chunk, location: location)
    }
}
