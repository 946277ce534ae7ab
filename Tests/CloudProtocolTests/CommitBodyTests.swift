import CloudProtocol
import FoundationEssentials
import Testing
import UbiquityModel

/// A commit is read operation by operation; what comes out is what generated code reads.
@Suite struct CommitBodyTests {
    private func create(chunks: Int = 0, attributeBytes: Int = 0) throws -> ItemOperation {
        let entry = Manifest.Entry(chunk: try Samples.digest(7), length: 1000)
        let manifest = Manifest(entries: Array(repeating: entry, count: chunks))
        var attributes = ItemAttributes(modified: Timestamp(nanoseconds: 1), mode: 0o644)
        attributes.extended[Array("user.a".utf8)] = [UInt8](repeating: 1, count: attributeBytes)
        let content = FileContent(revision: Samples.revision, content: try Samples.digest(9), size: manifest.size)
        return ItemOperation(
            id: OperationID(high: 1, low: 1),
            item: Samples.item,
            action: .create(
                place: try Samples.place(),
                content: .file(content),
                attributes: attributes,
                manifest: manifest,
                edited: Timestamp(nanoseconds: 2)
            )
        )
    }

    private func body(_ operations: [WireOperation]) throws -> CommitBody {
        var request = WireCommitRequest()
        request.format = 1
        request.deviceClock = 5
        request.operations = operations
        return try CommitBody(body: try request.body)
    }

    @Test func `operations, chunks and the rest are there`() throws {
        var request = WireCommitRequest()
        request.format = 3
        request.deviceClock = -7
        request.chunks = [
            WireChunkFrame(chunk: try Samples.digest(1), length: 3, isCompressed: false, data: [1, 2, 3])
        ]
        request.operations = [WireOperation(try create(chunks: 2))]
        let body = try CommitBody(body: try request.body)
        #expect(body.format == 3)
        #expect(body.deviceClock == Timestamp(nanoseconds: -7))
        #expect(body.chunks.map { $0.data } == [[1, 2, 3]])
        #expect(body.entries == [.operation(try create(chunks: 2))])
    }

    @Test func `an operation that is none is refused, and the others are not`() throws {
        var broken = WireOperation(try create())
        broken.create.place.name = Data("a/b".utf8)
        let entries = try body([broken, WireOperation(try create()), WireOperation()]).entries
        #expect(entries[0] == .refused(item: Samples.item, reason: .badName(.containsSlash)))
        #expect(entries[1] == .operation(try create()))
        #expect(entries[2] == .refused(item: nil, reason: .missing("the operation's id")))
    }

    /// 20,000 chunks are 720,000 bytes, which are no reason to refuse it.
    @Test func `an operation is as long as its manifest, and not much longer`() throws {
        let long = try create(chunks: 20_000, attributeBytes: 60_000)
        #expect(try body([WireOperation(long)]).entries == [.operation(long)])
        var attribute = WireExtendedAttribute()
        attribute.value = Data(count: CommitBody.longestOperation)
        var tooLong = WireOperation(long)
        tooLong.create.attributes.extended.append(attribute)
        // It alone is refused: the others of its commit have nothing to do with it.
        let entries = try body([tooLong, WireOperation(long)]).entries
        #expect(entries.count == 2 && entries.last == .operation(long))
        guard case .refused(let item, .tooLong) = entries.first else {
            Issue.record("\(entries.first.debugDescription)")
            return
        }
        #expect(item == long.item)
    }

    @Test func `more than are allowed are counted, not read`() throws {
        let limit = CloudLimits.operationsPerCommit
        #expect(try body(Array(repeating: WireOperation(), count: limit)).entries.count == limit)
        #expect(throws: WireError.tooMany("operations in one commit", limit + 1, limit: limit)) {
            try body(Array(repeating: WireOperation(), count: limit + 1))
        }
        let chunks = CloudLimits.chunksPerCommit + 1
        #expect(throws: WireError.tooMany("chunks in one commit", chunks, limit: CloudLimits.chunksPerCommit)) {
            try CommitBody(body: [UInt8](repeatElement([0x1A, 0x00], count: chunks).joined()))
        }
    }

    @Test(arguments: [[0x22], [0x22, 0x05, 0x00], [0xFF], [0x07]] as [[UInt8]])
    func `what is no message is none`(bytes: [UInt8]) {
        #expect(throws: WireError.self) { try CommitBody(body: bytes) }
    }
}
