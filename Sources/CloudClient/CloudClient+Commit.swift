package import Chunking
internal import CloudProtocol
internal import NIOHTTP1
package import UbiquityModel

extension CloudClient {
    package func commit(
        _ container: ContainerID,
        operations: [ItemOperation],
        frames: [ChunkFrame],
        clock: Timestamp,
        bases: [ItemID: KnownManifest] = [:],
        discardsFormer: Bool = false
    ) async throws(CloudError) -> CommitAnswer {
        let head = CommitHead(clock: clock, discardsFormer: discardsFormer)
        if let message = differences(operations, frames, head, bases) {
            do throws(CloudError) {
                return try await send(message, for: operations.count, to: container, isLarge: !frames.isEmpty)
            } catch {
                switch error {
                // A base is not known there any more, or all of them are too much at once.
                case .rejected(FailureCode.unknownBase.rawValue, _), .rejected(FailureCode.tooLarge.rawValue, _): break
                default: throw error
                }
            }
        }
        return try await commit(container, operations, frames, head, limit: CloudLimits.messageBytes)
    }

    /// The request with manifests as differences; `nil` if no manifest becomes shorter by that, or the server would not understand it.
    private func differences(
        _ operations: [ItemOperation],
        _ frames: [ChunkFrame],
        _ head: CommitHead,
        _ bases: [ItemID: KnownManifest]
    ) -> [UInt8]? {
        guard !bases.isEmpty, takesDifferences, frames.count <= CloudLimits.chunksPerCommit else { return nil }
        let wires = operations.map { operation in
            bases[operation.item].map { WireOperation(operation, base: $0.content, $0.manifest) }
                ?? WireOperation(operation)
        }
        let made = zip(operations, wires).reduce(0) { count, pair in
            guard pair.1.isBased, case .edit(_, _, _, let manifest, _) = pair.0.action else { return count }
            return count + manifest.entries.count
        }
        guard made > 0, made <= ManifestDifference.longest,
            let body = try? WireCommitRequest(wires, frames, head).body, body.count <= CloudLimits.messageBytes
        else { return nil }
        return body
    }

    /// - Parameter limit: Of one request in bytes.
    func commit(
        _ container: ContainerID,
        _ operations: [ItemOperation],
        _ frames: [ChunkFrame],
        _ head: CommitHead,
        limit: Int
    ) async throws(CloudError) -> CommitAnswer {
        // Of tiny chunks more than one request may have are still few bytes.
        if frames.count <= CloudLimits.chunksPerCommit {
            let message = WireCommitRequest(operations.map { WireOperation($0) }, frames, head)
            // A batch that cannot even be encoded is too long as well.
            if let body = try? message.body, body.count <= limit {
                return try await send(body, for: operations.count, to: container, isLarge: !frames.isEmpty)
            }
        }
        try await upload(container, frames: frames)
        var parts = CommitParts(client: self, container: container, head: head, limit: limit)
        for operation in operations { try await parts.add(operation) }
        return try await parts.finish()
    }

    fileprivate func send(
        _ body: [UInt8],
        for count: Int,
        to container: ContainerID,
        isLarge: Bool
    ) async throws(CloudError) -> CommitAnswer {
        var request = CloudRequest(method: .POST, path: CloudRoute.path(container, .commit), body: .message(body))
        // Without chunks it goes with the questions.
        if isLarge { request.pool = .uploads }
        let answer = try await send(request, WireCommitResponse.self)
        guard answer.outcomes.count == count else {
            throw .malformed("\(answer.outcomes.count) outcomes for \(count) operations")
        }
        return try decoding { () throws(WireError) in
            CommitAnswer(
                // One item that nobody can read does not take the answers of all others with it.
                outcomes: answer.outcomes.map { wire in
                    do throws(WireError) { return try OperationOutcome(wire: wire) } catch {
                        return .invalid(error.description)
                    }
                },
                position: try LogPosition(counter: answer.position, wireHash: [UInt8](answer.hash))
            )
        }
    }
}

/// What all operations of a commit have in common.
struct CommitHead {
    /// The device's, now.
    var clock: Timestamp
    /// What is replaced is kept as no saved version.
    var discardsFormer = false
}

/// A batch that is longer than one request may be (large files have long manifests), in several: with the outcomes that one request
/// would have had, and with those that no request can hold refused alone.
private struct CommitParts {
    /// Of a request and of each operation, besides the operations' own bytes: tags, lengths, the clock.
    private static let overheadBytes = 64

    let client: CloudClient
    let container: ContainerID
    let head: CommitHead
    let limit: Int
    private var outcomes = [OperationOutcome]()
    private var dependencies = BatchDependencies()
    /// As of the last request.
    private var position: LogPosition?
    /// The next request.
    private var pending = [(operation: ItemOperation, wire: WireOperation)]()
    private var pendingBytes = Self.overheadBytes

    init(client: CloudClient, container: ContainerID, head: CommitHead, limit: Int) {
        self.client = client
        self.container = container
        self.head = head
        self.limit = limit
    }

    mutating func add(_ operation: ItemOperation) async throws(CloudError) {
        let wire = WireOperation(operation)
        // `nil`: it cannot even be encoded.
        let bytes = (try? wire.body).map { $0.count + Self.overheadBytes }
        let fits = bytes.map { Self.overheadBytes + $0 <= limit } ?? false
        // Outcomes have the order of the operations: what is settled here comes after what waits.
        let mustSend = !fits || dependencies.isBlocked(operation) || pendingBytes + (bytes ?? 0) > limit
        if mustSend, !pending.isEmpty { try await sendPending() }
        if dependencies.isBlocked(operation) {
            note(.skipped, of: operation)
        } else if let bytes, fits {
            pending.append((operation, wire))
            pendingBytes += bytes
        } else {
            note(
                .invalid("it is too large: the list of its chunks is longer than the \(limit) bytes of a commit"),
                of: operation
            )
        }
    }

    mutating func finish() async throws(CloudError) -> CommitAnswer {
        // The position comes from the server also where nothing was left to commit.
        if !pending.isEmpty || position == nil { try await sendPending() }
        return CommitAnswer(outcomes: outcomes, position: position ?? .beginning)
    }

    private mutating func sendPending() async throws(CloudError) {
        let body: [UInt8]
        do throws(WireError) { body = try WireCommitRequest(pending.map(\.wire), [], head).body } catch {
            throw .rejected(code: FailureCode.tooLarge.rawValue, message: error.description)
        }
        let answer = try await client.send(body, for: pending.count, to: container, isLarge: true)
        position = answer.position
        for (sent, outcome) in zip(pending, answer.outcomes) { note(outcome, of: sent.operation) }
        pending = []
        pendingBytes = Self.overheadBytes
    }

    private mutating func note(_ outcome: OperationOutcome, of operation: ItemOperation) {
        dependencies.record(operation.item, outcome)
        outcomes.append(outcome)
    }
}

extension WireCommitRequest {
    fileprivate init(_ operations: [WireOperation], _ frames: [ChunkFrame], _ head: CommitHead) {
        self.init()
        format = FormatVersion.cloudProtocol
        deviceClock = head.clock.nanoseconds
        discardsFormer = head.discardsFormer
        chunks = frames.map { WireChunkFrame($0) }
        self.operations = operations
    }
}
