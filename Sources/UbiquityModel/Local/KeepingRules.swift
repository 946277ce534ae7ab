/// What the user wants to have of a container's content on this device: what comes by itself, and what goes by itself
/// (semantics section 3).
package struct KeepingRules: Hashable, Sendable {
    /// Everything comes, not only what is opened or pinned.
    package var isGreedy = false
    /// So many bytes of content at most are here: of more, what was used least recently goes.
    package var limitBytes: Int64?
    /// What nobody has opened for so long goes.
    package var unusedLimit: Duration?
    /// What is overwritten here is kept by nobody: there are no saved versions of it.
    package var discardsFormer = false

    package init() {}

    /// Whether anything goes by itself.
    package var givesUp: Bool { limitBytes != nil || unusedLimit != nil }
}
