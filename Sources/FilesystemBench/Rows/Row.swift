import ArgumentParser

/// What is measured with system calls of our own. The other rows are programs, which the script starts.
///
/// `cold` and `uncached` mean: the caller has emptied the kernel's caches, and the row does not fill them before it starts
/// its clock. All others make one pass that is not timed, or work on what they have just made.
enum Row: String, CaseIterable, ExpressibleByArgument {
    case create
    case statCold = "stat-cold"
    case statWarm = "stat-warm"
    case readdirCold = "readdir-cold"
    case readdirWarm = "readdir-warm"
    case openReadCold = "open-read-cold"
    case openRead = "open-read"
    case rename
    case unlink

    case write
    case readUncached = "read-uncached"
    case readCached = "read-cached"
    case randomReadUncached = "random-read-uncached"
    case randomRead = "random-read"
    case randomWrite = "random-write"
    case mmapRead = "mmap-read"
    case mmapWrite = "mmap-write"

    /// Measures in the folder, which `seed` has filled with the same sizes.
    func measure(_ sizes: Sizes) throws(SystemError) -> Figure {
        switch self {
        case .create: try MetadataRows(sizes).create()
        case .statCold: try MetadataRows(sizes).stat(warm: false)
        case .statWarm: try MetadataRows(sizes).stat(warm: true)
        case .readdirCold: try MetadataRows(sizes).readdir(warm: false)
        case .readdirWarm: try MetadataRows(sizes).readdir(warm: true)
        case .openReadCold: try MetadataRows(sizes).openRead(warm: false)
        case .openRead: try MetadataRows(sizes).openRead(warm: true)
        case .rename: try MetadataRows(sizes).rename()
        case .unlink: try MetadataRows(sizes).unlink()
        case .write: try DataRows(sizes).write()
        case .readUncached: try DataRows(sizes).read(cached: false)
        case .readCached: try DataRows(sizes).read(cached: true)
        case .randomReadUncached: try DataRows(sizes).randomRead(cached: false)
        case .randomRead: try DataRows(sizes).randomRead(cached: true)
        case .randomWrite: try DataRows(sizes).randomWrite()
        case .mmapRead: try DataRows(sizes).mmapRead()
        case .mmapWrite: try DataRows(sizes).mmapWrite()
        }
    }
}
