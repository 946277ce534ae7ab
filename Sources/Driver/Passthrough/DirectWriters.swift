/// The handles of one inode that write to the backing file past the mount, and what they may leave behind: the kernel maps that file
/// itself, and such a mapping keeps no handle.
///
/// They come and go on several threads at a time, and looking whether a mapping is left takes system calls. So who leaves says so first:
/// of those that leave together the last one looks, and what it finds counts only if nobody has come since.
struct DirectWriters: Sendable {
    /// Some of them may have mapped it for writing. Or those of an earlier mount, whose mappings live on as well.
    var mayHaveMapped = false
    private(set) var count = 0
    private var leaving = 0
    private var ever: UInt64 = 0

    /// Who had come when somebody began to look for mappings. What that one finds he tells to `looked`.
    struct Look: Equatable, Sendable {
        fileprivate let ever: UInt64
    }

    mutating func come(mayMap: Bool) {
        count += 1
        ever += 1
        if mayMap { mayHaveMapped = true }
    }

    /// One is closed. `end` follows, or `looked` keeps it.
    /// - Returns: nil if nothing can be left behind, or others stay who will look.
    mutating func leave() -> Look? {
        leaving += 1
        return leaving == count && mayHaveMapped ? Look(ever: ever) : nil
    }

    /// For somebody who looks and has nothing to close: `looked` follows if nothing is mapped, and only then.
    func look() -> Look { Look(ever: ever) }

    /// - Parameter isMapped: then the one who looked has not left.
    mutating func looked(_ look: Look, isMapped: Bool) {
        if isMapped {
            leaving -= 1
        } else if look.ever == ever {
            mayHaveMapped = false
        }
    }

    /// One that was leaving is done with.
    /// - Returns: whether it was the last.
    mutating func end() -> Bool {
        leaving -= 1
        count -= 1
        return count == 0
    }
}
