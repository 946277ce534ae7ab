import CFuse3

/// Bits of `st_mode` (inode(7)): as macros they come with two modules, which Swift cannot choose between.
enum FileMode {
    static let typeMask: mode_t = 0o170000
    static let folder: mode_t = 0o040000
    static let file: mode_t = 0o100000
    static let symlink: mode_t = 0o120000
    static let setUser: mode_t = 0o4000
    static let setGroup: mode_t = 0o2000
}
