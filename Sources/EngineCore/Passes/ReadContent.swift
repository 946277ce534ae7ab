package import UbiquityModel

/// What was read of a file for sending.
package struct ReadContent: Sendable {
    package var manifest: Manifest
    package var content: ContentID
    /// The file as it was while it was read.
    package var state: LocalState
    /// The chunks themselves, when the file was small; empty when they have been uploaded already.
    package var chunks: [ChunkID: [UInt8]]
    /// Those of a package's files whose content is not here: the cloud has them, or nobody can send them from here.
    package var absent: Set<ChunkID>

    package init(
        manifest: Manifest,
        content: ContentID,
        state: LocalState,
        chunks: [ChunkID: [UInt8]],
        absent: Set<ChunkID> = []
    ) {
        self.manifest = manifest
        self.content = content
        self.state = state
        self.chunks = chunks
        self.absent = absent
    }
}
