import Chunking
import CloudProtocol
import FoundationEssentials
import Synchronization
import Testing
import UbiquityModel

@testable import CloudClient

/// What goes out as a commit, and what comes back.
@Suite struct CommitTests {
    private static func operation(_ action: ItemOperation.Action) -> ItemOperation {
        ItemOperation(id: .random(), item: .random(), action: action)
    }

    private static func create(_ name: String, chunk: ChunkID, bytes: UInt32) throws -> ItemOperation.Action {
        let content = try #require(ContentID(bytes: [UInt8](repeating: 2, count: 32)))
        return .create(
            place: Place(parent: .root, name: try Name(name)),
            content: .file(FileContent(revision: .random(), content: content, size: Int64(bytes))),
            attributes: ItemAttributes(modified: Timestamp(nanoseconds: 7), mode: 0o644),
            manifest: Manifest(entries: [.init(chunk: chunk, length: bytes)]),
            edited: Timestamp(nanoseconds: 8)
        )
    }

    @Test(arguments: [true, false])
    func `a commit has the bytes of generated code, and its answer is read`(discardsFormer: Bool) async throws {
        let received = Mutex<[[UInt8]]>([])
        let frames = try (1...3).map { try frame(UInt8($0), bytes: 4096) }
        var operations = try frames.map { Self.operation(try Self.create("f", chunk: $0.chunk, bytes: $0.length)) }
        operations.append(Self.operation(.delete(base: nil)))
        let item = RemoteItem(
            id: .random(),
            place: Place(parent: .root, name: try Name("f")),
            content: .folder,
            attributes: ItemAttributes(modified: Timestamp(nanoseconds: 7), mode: 0o755),
            position: 9
        )
        let outcomes: [OperationOutcome] = [.committed(item), .superseded(item), .committed(item), .notEmpty]
        let position = LogPosition(counter: 9, hash: [UInt8](repeating: 3, count: 32))
        let answer = try await withClient(answer: { request in
            received.withLock { $0.append(request.body) }
            var answer = WireCommitResponse()
            answer.outcomes = outcomes.map { WireOutcome($0) }
            answer.position = position.counter
            answer.hash = Data(position.hash)
            return StubServer.Answer(answer)
        }) { [operations] client, _ in
            try await client.commit(
                .documents,
                operations: operations,
                frames: frames,
                clock: Timestamp(nanoseconds: -1),
                discardsFormer: discardsFormer
            )
        }
        #expect(answer.outcomes == outcomes)
        #expect(answer.position == position)
        var expected = WireCommitRequest()
        expected.format = FormatVersion.cloudProtocol
        expected.deviceClock = -1
        expected.chunks = frames.map { WireChunkFrame($0) }
        expected.operations = operations.map { WireOperation($0) }
        expected.discardsFormer = discardsFormer
        expected.nonce = Data([4])
        let bodies = received.withLock { $0 }
        let body = try expected.body
        #expect(bodies == [body])
    }

    @Test(arguments: [0, 1, 3])
    func `an answer to other operations makes no sense`(count: Int) async throws {
        let operations = (0..<2).map { _ in Self.operation(.delete(base: nil)) }
        await #expect(throws: CloudError.malformed("\(count) outcomes for 2 operations")) {
            try await withClient(answer: { _ in
                var answer = WireCommitResponse()
                answer.outcomes = (0..<count).map { _ in WireOutcome(.skipped) }
                return StubServer.Answer(answer)
            }) { client, _ in
                try await client.commit(
                    .documents,
                    operations: operations,
                    frames: [],
                    clock: Timestamp(nanoseconds: 1)
                )
            }
        }
    }
}
