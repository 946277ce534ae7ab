internal import CSQLiteSettings

/// Settings of the SQLite library, the same for all databases of a process.
package enum SQLiteSettings {
    private static let applied: Void = csqlite_do_not_count_memory()

    /// To be called before the first database is opened.
    package static func apply() { applied }
}
