package import UbiquityModel

/// Where chunks lie as bytes, many to a *pack*. The catalogue knows which chunk lies where; a store knows only packs.
package protocol ChunkStore: Sendable {
    /// Writes the chunks. When it returns, they are durable; when it throws, none of them is to be relied on.
    func store(_ chunks: [StoredChunk]) async throws(ChunkStoreError) -> [ChunkLocation]
    /// How many bytes of data a chunk has, by its place alone.
    func dataCount(at location: ChunkLocation) throws(ChunkStoreError) -> Int
    /// Runs `body` on a thread that may block, and returns what it returns.
    /// - Parameter body: reads chunks to wherever it wants them, so that they are not copied from where they were read to.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (any ChunkReader) throws(ChunkStoreError) -> Value
    ) async throws(ChunkStoreError) -> Value
    /// Whether the pack is there.
    func hasPack(_ pack: UInt64) -> Bool
    /// Whether the pack is there, and has what lies before `end`, in bytes from its beginning. It may be shorter where packs and
    /// catalogue are backups of different days.
    func hasPack(_ pack: UInt64, upTo end: UInt64) -> Bool
    /// The same of a record that ends there; `false` as well if it has been found damaged, and still is.
    func hasRecord(in pack: UInt64, endingAt end: UInt64) -> Bool
    /// The size of a pack in bytes; `nil` if it is not there, or may still be added to. Blocks on the disk.
    func size(ofClosed pack: UInt64) async throws(ChunkStoreError) -> UInt64?
    /// What its disk has room for, in bytes; `nil` if it does not say.
    func freeBytes() async -> Int64?
    /// Removes a pack that nothing leads to, which is not being added to. Does nothing if it is not there.
    func remove(_ pack: UInt64) async throws(ChunkStoreError)
    /// Finishes what was asked for; nothing more may be asked for then.
    func close() async
}

/// Reads chunks out of packs. Blocks on the disk.
package protocol ChunkReader {
    /// Reads the data.
    /// - Parameters:
    ///   - room: exactly as many bytes as `ChunkStore.dataCount(at:)` says.
    ///   - examining: whether the data is compared with its check, which costs more than reading it. Without that only what is no such
    ///     record at all, or cannot be read, counts as damaged.
    /// - Returns: whether the record is not the one asked for, does not match its own check, or cannot be read: the disk has damaged it.
    ///   The room then has what is there, or zeros.
    func read(
        _ chunk: ChunkRequest,
        into room: UnsafeMutableRawBufferPointer,
        examining: Bool
    ) throws(ChunkStoreError) -> Bool
}

/// A chunk as it is stored: compressed where that pays. The store never looks into it.
package struct StoredChunk: Hashable, Sendable {
    /// The container's number in the catalogue, so that the catalogue's index could be made anew from the packs.
    package var container: Int64
    package var chunk: ChunkID
    /// Of the plain chunk in bytes.
    package var length: UInt32
    package var isCompressed: Bool
    package var data: ArraySlice<UInt8>

    package init(container: Int64, chunk: ChunkID, length: UInt32, isCompressed: Bool, data: ArraySlice<UInt8>) {
        self.container = container
        self.chunk = chunk
        self.length = length
        self.isCompressed = isCompressed
        self.data = data
    }
}

/// A record in a pack.
package struct ChunkLocation: Hashable, Sendable {
    package var pack: UInt64
    /// In bytes from the beginning of the pack.
    package var offset: UInt64
    /// Of the whole record in bytes.
    package var length: UInt32

    package init(pack: UInt64, offset: UInt64, length: UInt32) {
        self.pack = pack
        self.offset = offset
        self.length = length
    }
}

package struct ChunkRequest: Hashable, Sendable {
    package var chunk: ChunkID
    package var location: ChunkLocation

    package init(chunk: ChunkID, location: ChunkLocation) {
        self.chunk = chunk
        self.location = location
    }
}

package enum ChunkStoreError: Error, Hashable, Sendable {
    /// The disk is full. Nothing half-written is left.
    case noSpace
    /// Another process has the store open.
    case inUse(String)
    /// The catalogue names a pack, or a place in one, that is not there.
    case missing(pack: UInt64)
    /// Written by a newer version of ubiquity.
    case tooNew(String)
    /// A system call failed: what it was to do, and the error number.
    case failed(String, errno: Int32)
    case closed
}

extension ChunkStoreError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noSpace: "the disk of the chunk store is full"
        case .inUse(let path): "another server is using \(path)"
        case .missing(let pack): "pack \(pack) is not there, or shorter than the catalogue says"
        case .tooNew(let path): "\(path) was written by a newer version of ubiquity"
        case .failed(let what, let code): "\(what): \(message(of: code))"
        case .closed: "the chunk store is closed"
        }
    }
}
