internal import CLinux
internal import GRDB
internal import Glibc

/// What a disk keeps for opening a database: SQLite needs some room for that (its log, and the memory that its users share, are files),
/// and without the database nobody could evict or delete what fills the disk.
package enum DatabaseRoom {
    private static let bytes: Int64 = 1 << 20

    /// Opens the database at `path`. If that fails for want of room, what is kept beside it is given back to the disk, and it is tried once
    /// more; it is kept anew as soon as the database is opened and the disk has room.
    /// - Parameter open: leaves nothing open if it throws.
    package static func opening<Value>(_ path: String, _ open: () throws -> Value) throws -> Value {
        let kept = path + ".reserve"
        let value: Value
        do { value = try open() } catch {
            guard wantsRoom(error), unlink(kept) == 0 else { throw error }
            value = try open()
        }
        _ = clinux_keep_room(kept, bytes)
        return value
    }

    /// A full disk is told in several ways: by what writes, by what maps the shared memory, and where no file can be made.
    private static func wantsRoom(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return false }
        return [.SQLITE_FULL, .SQLITE_IOERR, .SQLITE_CANTOPEN].contains(error.resultCode)
    }
}
