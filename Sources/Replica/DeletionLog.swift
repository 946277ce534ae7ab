internal import CLinux
internal import Glibc
internal import Synchronization
package import SystemPackage
package import UbiquityModel

/// Which synced items were deleted by a program and not yet in the cloud. A scan takes absence for a deletion only with
/// an entry here.
///
/// One `write` an entry and no sync: after a power loss an entry may be missing, and the item comes back; it is never
/// lost. The file: "UBQD" and a version (4 bytes, big-endian), then records of 20 bytes: item id and a check over it
/// and over what the record says (deleted, or withdrawn). Damaged records are skipped, a torn one at the end is cut
/// off.
package final class DeletionLog: Sendable {
    private static let version: UInt32 = 1
    private static let magic = Array("UBQD".utf8)
    private static let headerCount = 8
    private static let recordCount = 20
    /// Above this the file is written anew once most of its records say nothing any more.
    private static let compactionThreshold = 1024

    private let path: String
    /// Guards the file (so that it holds what `entries` says, in order) and the entries. Held across one write; nothing
    /// is locked under it.
    private let state: Mutex<State>

    private struct State: ~Copyable {
        var file: OwnedDescriptor
        var entries: Set<ItemID>
        var records: Int
    }

    private enum Meaning: UInt32 {
        case deleted = 0x9E37_79B9
        case withdrawn = 0x85EB_CA6B
    }

    package init(path: String) throws(ReplicaError) {
        self.path = path
        let file = try ReplicaError.naming("open", path) { () throws(Errno) in
            OwnedDescriptor(
                try checked(clinux_open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600))
            )
        }
        let bytes = try ReplicaError.naming("read", path) { () throws(Errno) in try Self.contents(file.raw) }
        var entries = Set<ItemID>()
        var records = 0
        if bytes.count >= Self.headerCount {
            var reader = ByteReader(bytes)
            guard reader.bytes(4) == Self.magic, let version = reader.integer(UInt32.self) else {
                throw .corrupted(path)
            }
            guard version == Self.version else { throw .tooNew(what: path, version: version) }
            while let record = reader.bytes(Self.recordCount) {
                records += 1
                switch Self.decode(record) {
                case (let item, .deleted)?: entries.insert(item)
                case (let item, .withdrawn)?: entries.remove(item)
                case nil: break
                }
            }
        }
        let whole = bytes.count >= Self.headerCount ? Self.headerCount + records * Self.recordCount : 0
        try ReplicaError.naming("write", path) { () throws(Errno) in
            if whole < bytes.count { try checked(clinux_truncate(file.raw, Int64(whole))) }
            if whole == 0 { try Self.write(Self.header, to: file.raw) }
        }
        state = Mutex(State(file: file, entries: entries, records: records))
    }

    /// Before a program's unlink, rmdir or replacing rename takes a synced item out of the tree.
    package func append(_ item: ItemID) throws(Errno) {
        try state.withLock { state throws(Errno) in
            guard !state.entries.contains(item) else { return }
            try Self.write(Self.encode(item, .deleted), to: state.file.raw)
            state.entries.insert(item)
            state.records += 1
        }
    }

    /// When a deletion has been committed, or the item is there after all. Others that are appended meanwhile stay.
    package func remove(_ items: some Sequence<ItemID>) throws(Errno) {
        let items = Set(items)
        try state.withLock { state throws(Errno) in
            let known = state.entries.intersection(items)
            guard !known.isEmpty else { return }
            try Self.write(known.sorted().flatMap { Self.encode($0, .withdrawn) }, to: state.file.raw)
            state.entries.subtract(known)
            state.records += known.count
            if state.records > Self.compactionThreshold, state.records > 4 * state.entries.count { try compact(&state) }
        }
    }

    package func contains(_ item: ItemID) -> Bool { state.withLock { $0.entries.contains(item) } }

    package func entries() -> Set<ItemID> { state.withLock { $0.entries } }

    /// Keeps these entries only and writes the file anew (new file, fsync, rename). For the start, when nothing is
    /// appended: entries that the caller does not know of are dropped.
    package func compact(keeping kept: Set<ItemID>) throws(Errno) {
        try state.withLock { state throws(Errno) in
            state.entries.formIntersection(kept)
            try compact(&state)
        }
    }

    private func compact(_ state: inout State) throws(Errno) {
        let temporary = path + ".new"
        let flags = O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW
        let file = OwnedDescriptor(try checked(clinux_open_at(AT_FDCWD, temporary, flags, 0o600)))
        try Self.write(Self.header + state.entries.sorted().flatMap { Self.encode($0, .deleted) }, to: file.raw)
        try checked(clinux_fsync(file.raw))
        try checked(clinux_rename_at(AT_FDCWD, temporary, AT_FDCWD, path, 0))
        state.file = file
        state.records = state.entries.count
    }

    /// One write. What does not fit on the disk is taken back, so that records stay aligned.
    private static func write(_ bytes: [UInt8], to file: Int32) throws(Errno) {
        let written = try checked(bytes.withUnsafeBytes { clinux_write(file, $0.baseAddress, $0.count) })
        guard written == bytes.count else {
            var status = clinux_status()
            try checked(clinux_status_of(file, &status))
            try checked(clinux_truncate(file, status.size - Int64(written)))
            throw .noSpace
        }
    }

    private static var header: [UInt8] {
        var writer = ByteWriter()
        writer.bytes(magic)
        writer.integer(version)
        return writer.result
    }

    private static func encode(_ item: ItemID, _ meaning: Meaning) -> [UInt8] {
        var writer = ByteWriter()
        writer.bytes(item.bytes)
        writer.integer(check(item.bytes, meaning))
        return writer.result
    }

    private static func decode(_ record: [UInt8]) -> (ItemID, Meaning)? {
        var reader = ByteReader(record)
        guard let bytes = reader.bytes(16), let item = ItemID(bytes: bytes), let sum = reader.integer(UInt32.self)
        else { return nil }
        for meaning in [Meaning.deleted, .withdrawn] where check(bytes, meaning) == sum { return (item, meaning) }
        return nil
    }

    /// FNV-1a from a start that differs by meaning; zeros, as a crash leaves them, have another one.
    private static func check(_ bytes: [UInt8], _ meaning: Meaning) -> UInt32 {
        bytes.reduce(meaning.rawValue) { ($0 ^ UInt32($1)) &* 16_777_619 }
    }

    private static func contents(_ file: Int32) throws(Errno) -> [UInt8] {
        let size = Int(try status(of: file).size)
        var result: Int64 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { room, count in
            result = clinux_pread(file, room.baseAddress, room.count, 0)
            count = max(0, Int(result))
        }
        try checked(result)
        return bytes
    }
}
