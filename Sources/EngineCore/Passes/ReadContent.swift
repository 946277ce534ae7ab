package import UbiquityModel

/// What was read of a file for sending.
package struct ReadContent: Sendable {
    package var manifest: Manifest
    package var content: ContentID
    /// The file as it was while it was read.
    package var state: LocalState
    /// The chunks themselves, when the file was small; empty when they have been uploaded already.
    package var chunks: [ChunkID: [UInt8]]

    package init(manifest: Manifest, content: ContentID, state: LocalState, chunks: [ChunkID: [UInt8]]) {
        self.manifest = manifest
        self.content = content
        self.state = state
        self.chunks = chunks
    }
}
