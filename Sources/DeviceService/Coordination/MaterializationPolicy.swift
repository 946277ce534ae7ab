/// Which programs may fetch content by reading: what looks at every file, unasked, must not pull the whole cloud down.
enum MaterializationPolicy {
    /// Indexers, thumbnailers and scanners, by the name of their program.
    static let refused: Set<String> = [
        "baloo_file", "baloo_file_extractor", "clamd", "clamscan", "ffmpegthumbnailer", "gnome-thumbnail-font",
        "localsearch-3",
        "localsearch-extractor-3", "recollindex", "tracker-extract", "tracker-extract-3", "tracker-miner-fs",
        "tracker-miner-fs-3",
        "tumblerd", "updatedb", "updatedb.findutils", "updatedb.mlocate", "updatedb.plocate",
    ]

    /// One readlink: request threads may do that.
    static func allows(_ threadID: Int32) -> Bool {
        guard let program = ProcessTable.program(of: threadID) else { return true }
        return !refused.contains(program)
    }
}
