internal import FoundationEssentials
package import UbiquityModel

/// The message `CommitRequest`, as the server reads it: operation by operation.
///
/// As objects of generated code, empty operations and attributes take a hundred times the bytes that they have on the wire. Here there is
/// one operation at a time in that form, if it is not a plain one, and not a long one: a body of 32 MiB is never more than a few times that
/// in memory. The data of its chunks stays in it.
package struct CommitBody {
    package enum Entry: Hashable, Sendable {
        case operation(ItemOperation)
        /// Complete only with the manifest of another content.
        case based(BasedOperation)
        /// It is not what it claims to be. The item, where it names one.
        case refused(item: ItemID?, reason: WireError)
    }

    /// Of an operation without its manifest, in bytes: extended attributes have 64 KiB, and there is room to spare.
    package static let longestOperation = 256 * 1024

    private enum Tag {
        static let chunks: UInt64 = 3 << 3 | 2
        static let operations: UInt64 = 4 << 3 | 2
        /// In an operation.
        static let item: UInt64 = 2 << 3 | 2
        /// The actions with a manifest, and where it is in either.
        static let create: UInt64 = 3 << 3 | 2
        static let edit: UInt64 = 5 << 3 | 2
        static let manifest: UInt64 = 4 << 3 | 2
    }

    package private(set) var chunks: [WireChunkFrame.Parts] = []
    package private(set) var entries: [Entry] = []
    /// Of the protocol, as the device speaks it.
    package private(set) var format: UInt32
    /// As the device has it; zero if it did not say.
    package private(set) var deviceClock: Timestamp
    /// What is replaced, and was seen by whoever replaces it, is kept as no saved version.
    package private(set) var discardsFormer: Bool
    /// Of the device's session, as far as it knows; empty if it did not say.
    package private(set) var nonce: [UInt8]

    package init(body: [UInt8]) throws(WireError) {
        guard let parts = body.withUnsafeBytes({ Parts($0) }) else {
            throw .undecodable("a message of the kind \(WireCommitRequest.protoMessageName)")
        }
        let rest = try WireCommitRequest(body: parts.others)
        format = rest.format
        deviceClock = Timestamp(wire: rest.deviceClock)
        discardsFormer = rest.discardsFormer
        nonce = [UInt8](rest.nonce)
        guard parts.operations.count <= CloudLimits.operationsPerCommit else {
            throw .tooMany("operations in one commit", parts.operations.count, limit: CloudLimits.operationsPerCommit)
        }
        guard parts.chunks.count <= CloudLimits.chunksPerCommit else {
            throw .tooMany("chunks in one commit", parts.chunks.count, limit: CloudLimits.chunksPerCommit)
        }
        chunks = try parts.chunks.map { (range) throws(WireError) in try WireChunkFrame.parts(of: body[range]) }
        entries = try parts.operations.map { (range) throws(WireError) in try Self.entry(body[range]) }
    }

    private static func entry(_ bytes: ArraySlice<UInt8>) throws(WireError) -> Entry {
        // What is plain is never long, but for its manifest.
        let plain = bytes.withUnsafeBytes { PlainOperation.decode($0) }
        if let plain { return .operation(plain) }
        let length = bytes.count - bytes.withUnsafeBytes { manifestLength($0) }
        guard length <= longestOperation else {
            // By itself, as all else that an operation must not be: the others of its commit have nothing to do with it.
            return .refused(
                item: bytes.withUnsafeBytes { item(of: $0) },
                reason: .tooLong("an operation without its chunks", bytes: length, limit: longestOperation)
            )
        }
        let wire = try WireOperation(body: Array(bytes))
        do throws(WireError) {
            if let based = try BasedOperation(wire) { return .based(based) }
            return .operation(try ItemOperation(wire: wire))
        } catch {
            return .refused(item: ItemID(bytes: wire.item), reason: error)
        }
    }

    /// The item of an operation that is not decoded, if it says so.
    private static func item(of bytes: UnsafeRawBufferPointer) -> ItemID? {
        var reader = WireReader(bytes)
        while !reader.isAtEnd, let tag = reader.varint() {
            if tag == Tag.item { return reader.field().flatMap { ItemID(bytes: Array($0)) } }
            guard reader.skip(tag) else { return nil }
        }
        return nil
    }

    /// How many bytes of an operation are a manifest.
    private static func manifestLength(_ bytes: UnsafeRawBufferPointer) -> Int {
        var length = 0
        var operation = WireReader(bytes)
        while !operation.isAtEnd {
            guard let tag = operation.varint() else { break }
            guard tag == Tag.create || tag == Tag.edit else {
                guard operation.skip(tag) else { break }
                continue
            }
            guard let action = operation.field() else { break }
            var reader = WireReader(action)
            while let tag = reader.varint() {
                if tag == Tag.manifest, let manifest = reader.field() {
                    length += manifest.count
                } else if !reader.skip(tag) {
                    break
                }
            }
        }
        return length
    }

    /// Where what there may be many of stands in the body.
    private struct Parts {
        var chunks: [Range<Int>] = []
        var operations: [Range<Int>] = []
        /// The message without them.
        var others: [UInt8] = []

        /// `nil` for what is no message.
        init?(_ body: UnsafeRawBufferPointer) {
            var reader = WireReader(body)
            while !reader.isAtEnd {
                let start = reader.offset
                guard let tag = reader.tag() else { return nil }
                switch tag {
                case Tag.chunks, Tag.operations:
                    guard let part = reader.field() else { return nil }
                    let range = reader.offset - part.count..<reader.offset
                    if tag == Tag.chunks { chunks.append(range) } else { operations.append(range) }
                default:
                    guard reader.skip(tag) else { return nil }
                    others.append(contentsOf: body[start..<reader.offset])
                }
            }
        }
    }
}
