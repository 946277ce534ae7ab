import TestSupport
import Testing

/// The product as a person uses it: the release build, real mounts, real processes, real servers.
///
/// One after the other: they measure times, and what one of them kills is the machine's load for another. Every test has a site
/// of its own, which ends with it.
@Suite(.serialized)
enum MountTests {}

/// What a folder holds; the test is told what differs.
func expectTree(
    _ folder: String,
    is right: Tree,
    _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let differences = try Tree(folder).differences(from: right)
    try #require(differences == [], comment, sourceLocation: sourceLocation)
}
