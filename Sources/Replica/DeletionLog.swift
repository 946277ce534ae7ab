internal import CLinux
internal import Glibc
internal import Synchronization
package import SystemPackage
package import UbiquityModel

/// What programs deleted and the cloud has not been told yet. Absence is taken for a deletion only with an entry here.
///
/// One `write` an entry and no sync: after a power loss an entry may be missing, and the item comes back; it is never
/// lost. The file: "UBQD" and a version (4 bytes, big-endian), then records of 36 bytes: an inode's key or an item's id,
/// filled up with zeros, and a check over it and over what the record says (deleted, or withdrawn). Damaged records are
/// skipped, a torn one at the end is cut off.
package final class DeletionLog: Sendable {
    package typealias Entry = DeletionEntry

    private static let version: UInt32 = 2
    private static let magic = Array("UBQD".utf8)
    private static let headerCount = 8
    private static let bodyCount = 32
    private static let recordCount = 36
    /// Version 1 knew items only, without the zeros.
    private static let oldRecordCount = 20
    /// Above this the file is written anew once most of its records say nothing any more.
    private static let compactionThreshold = 1024

    private let path: String
    /// Guards the file (so that it holds what `entries` says, in order) and the entries. Held across one write; nothing
    /// is locked under it.
    private let state: Mutex<State>

    private struct State: ~Copyable {
        var file: OwnedDescriptor
        var entries: Set<Entry>
        var records: Int
    }

    package init(path: String) throws(ReplicaError) {
        self.path = path
        let file = try ReplicaError.naming("open", path) { () throws(Errno) in
            OwnedDescriptor(
                try checked(clinux_open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600))
            )
        }
        let bytes = try ReplicaError.naming("read", path) { () throws(Errno) in try contents(of: file.raw) }
        var entries = Set<Entry>()
        var records = 0
        var isOld = false
        if bytes.count >= Self.headerCount {
            var reader = ByteReader(bytes)
            guard reader.bytes(4) == Self.magic, let version = reader.integer(UInt32.self), version > 0 else {
                throw .corrupted(path)
            }
            guard version <= Self.version else { throw .tooNew(what: path, version: version) }
            isOld = version == 1
            while let record = reader.bytes(isOld ? Self.oldRecordCount : Self.recordCount) {
                records += 1
                guard let (entry, isDeleted) = Self.decode(record) else { continue }
                if isDeleted { entries.insert(entry) } else { entries.remove(entry) }
            }
        }
        let size = isOld ? Self.oldRecordCount : Self.recordCount
        let whole = bytes.count >= Self.headerCount ? Self.headerCount + records * size : 0
        try ReplicaError.naming("write", path) { () throws(Errno) in
            if whole < bytes.count { try checked(clinux_truncate(file.raw, Int64(whole))) }
            if whole == 0 { try Self.write(Self.header, to: file.raw) }
        }
        state = Mutex(State(file: file, entries: entries, records: records))
        guard isOld else { return }
        try ReplicaError.naming("write", path) { () throws(Errno) in
            try state.withLock { state throws(Errno) in try compact(&state) }
        }
    }

    /// Before a program's unlink, rmdir or replacing rename takes a name away.
    ///
    /// - Throws: when it could not be written. It counts all the same, until this process ends.
    package func append(_ entry: Entry) throws(Errno) {
        try state.withLock { state throws(Errno) in
            guard state.entries.insert(entry).inserted else { return }
            // On a request's thread, one for each deleted file: no memory is allocated for it.
            try Self.writeRecord(entry, to: state.file.raw)
            state.records += 1
        }
    }

    /// When a deletion has been committed, or the item is there after all. Others that are appended meanwhile stay.
    package func remove(_ entries: some Sequence<Entry>) throws(Errno) {
        try state.withLock { state throws(Errno) in
            // Those that come twice are withdrawn twice in the file, which says the same.
            let known = entries.filter { state.entries.contains($0) }
            guard !known.isEmpty else { return }
            try Self.write(Self.records(known, isDeleted: false), to: state.file.raw)
            for entry in known { state.entries.remove(entry) }
            state.records += known.count
            guard state.records > Self.compactionThreshold, state.records > 4 * state.entries.count else { return }
            // They are withdrawn. Without room for a new file the old one goes on, and the next withdrawal tries again.
            try? compact(&state)
        }
    }

    package func contains(_ entry: Entry) -> Bool { state.withLock { $0.entries.contains(entry) } }

    package func entries() -> Set<Entry> { state.withLock { $0.entries } }

    package var count: Int { state.withLock { $0.entries.count } }

    /// The file anew: new file, fsync, rename.
    private func compact(_ state: inout State) throws(Errno) {
        let temporary = path + ".new"
        let flags = O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW
        let file = OwnedDescriptor(try checked(clinux_open_at(AT_FDCWD, temporary, flags, 0o600)))
        try Self.write(Self.header + Self.records(state.entries, isDeleted: true), to: file.raw)
        try checked(clinux_fsync(file.raw))
        try checked(clinux_rename_at(AT_FDCWD, temporary, AT_FDCWD, path, 0))
        state.file = file
        state.records = state.entries.count
    }

    /// One write. What does not fit on the disk is taken back, so that records stay aligned.
    private static func write(_ bytes: [UInt8], to file: Int32) throws(Errno) {
        let written = bytes.withUnsafeBytes { clinux_write(file, $0.baseAddress, $0.count) }
        try finish(written, of: bytes.count, in: file)
    }

    /// `write` of one entry that counts from now on.
    private static func writeRecord(_ entry: Entry, to file: Int32) throws(Errno) {
        let written = withUnsafeTemporaryAllocation(byteCount: recordCount, alignment: 8) { room in
            encode(entry, isDeleted: true, into: room)
            return clinux_write(file, room.baseAddress, recordCount)
        }
        try finish(written, of: recordCount, in: file)
    }

    private static func finish(_ result: Int64, of count: Int, in file: Int32) throws(Errno) {
        let written = try checked(result)
        guard written == count else {
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

    // MARK: Records

    /// Where the check over a record begins: says what it is of and what it means. Zeros, as a crash leaves them, have another check.
    private enum Start {
        static let deletedItem: UInt32 = 0x9E37_79B9
        static let withdrawnItem: UInt32 = 0x85EB_CA6B
        static let deletedInode: UInt32 = 0xC2B2_AE35
        static let withdrawnInode: UInt32 = 0x27D4_EB2F
        static let replacing: UInt32 = 0x1656_67B1
        static let withdrawnReplacing: UInt32 = 0xD3A2_646C
    }

    private static func records(_ entries: some Collection<Entry>, isDeleted: Bool) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: entries.count * recordCount) { room, count in
            for entry in entries {
                encode(
                    entry,
                    isDeleted: isDeleted,
                    into: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(room)[count...])
                )
                count += recordCount
            }
        }
    }

    /// Fills the first `recordCount` bytes.
    private static func encode(_ entry: Entry, isDeleted: Bool, into room: UnsafeMutableRawBufferPointer) {
        let body = UnsafeMutableRawBufferPointer(rebasing: room[..<bodyCount])
        let start: UInt32
        switch entry {
        case .inode(let key):
            key.write(to: body)
            start = isDeleted ? Start.deletedInode : Start.withdrawnInode
        case .replacing(let key):
            key.write(to: body)
            start = isDeleted ? Start.replacing : Start.withdrawnReplacing
        case .item(let item):
            body.initializeMemory(as: UInt8.self, repeating: 0)
            item.withBytes { body.copyMemory(from: $0) }
            start = isDeleted ? Start.deletedItem : Start.withdrawnItem
        }
        let sum = check(UnsafeRawBufferPointer(body), start)
        room.storeBytes(of: sum.bigEndian, toByteOffset: bodyCount, as: UInt32.self)
    }

    private static func decode(_ record: [UInt8]) -> (Entry, isDeleted: Bool)? {
        var reader = ByteReader(record)
        guard let body = reader.bytes(record.count - 4), let sum = reader.integer(UInt32.self) else { return nil }
        switch sum {
        case check(body, Start.deletedItem): return ItemID(bytes: body.prefix(16)).map { (.item($0), true) }
        case check(body, Start.withdrawnItem): return ItemID(bytes: body.prefix(16)).map { (.item($0), false) }
        case check(body, Start.deletedInode): return InodeKey(bytes: body).map { (.inode($0), true) }
        case check(body, Start.withdrawnInode): return InodeKey(bytes: body).map { (.inode($0), false) }
        case check(body, Start.replacing): return InodeKey(bytes: body).map { (.replacing($0), true) }
        case check(body, Start.withdrawnReplacing): return InodeKey(bytes: body).map { (.replacing($0), false) }
        default: return nil
        }
    }

    /// FNV-1a.
    private static func check(_ bytes: some Sequence<UInt8>, _ start: UInt32) -> UInt32 {
        var sum = start
        for byte in bytes { sum = (sum ^ UInt32(byte)) &* 16_777_619 }
        return sum
    }
}
