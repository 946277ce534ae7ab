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
        let head = CommitHead(clock: clock, discardsFormer: discardsFormer, nonce: storedNonce)
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
        let based = operations.map { operation -> WireOperation? in
            guard let base = bases[operation.item] else { return nil }
            let wire = WireOperation(operation, base: base.content, base.manifest)
            return wire.isBased ? wire : nil
        }
        let made = zip(operations, based).reduce(0) { count, pair in
            guard pair.1 != nil, case .edit(_, _, _, let manifest, _) = pair.0.action else { return count }
            return count + manifest.entries.count
        }
        guard made > 0, made <= ManifestDifference.longest else { return nil }
        return head.body(operations, based: based, frames, limit: CloudLimits.messageBytes)
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
        if frames.count <= CloudLimits.chunksPerCommit, let body = head.body(operations, frames, limit: limit) {
            return try await send(body, for: operations.count, to: container, isLarge: !frames.isEmpty)
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
        let answer = try await transport.send(request, token: credentials.token)
        let reply = try decoding { () throws(WireError) in try CommitReply(body: answer, count: count) }
        return CommitAnswer(outcomes: reply.outcomes, position: reply.position)
    }
}

/// What all operations of a commit have in common.
struct CommitHead {
    /// The device's, now.
    var clock: Timestamp
    /// What is replaced is kept as no saved version.
    var discardsFormer = false
    /// Of the session, as far as it is known here.
    var nonce: [UInt8] = []

    /// The request without anything in it.
    fileprivate func writer(capacity: Int) -> CommitWriter {
        CommitWriter(deviceClock: clock, discardsFormer: discardsFormer, nonce: nonce, capacity: capacity)
    }

    /// The request; `nil` if it is longer than `limit`, also because it is too long to be encoded at all.
    /// - Parameter based: those of the operations whose manifest is told as a difference, in their places.
    fileprivate func body(
        _ operations: [ItemOperation],
        based: [WireOperation?] = [],
        _ frames: [ChunkFrame],
        limit: Int
    ) -> [UInt8]? {
        let data = frames.reduce(0) { $0 + $1.data.count }
        guard data <= limit else { return nil }
        // About as many bytes as a chunk has besides its data, and the operation on a small file.
        var request = writer(capacity: min(limit, data + 64 * frames.count + 320 * operations.count))
        for frame in frames {
            request.append(chunk: (frame.chunk, frame.length, frame.isCompressed, frame.data))
        }
        for (index, operation) in operations.enumerated() {
            do throws(WireError) {
                if index < based.count, let wire = based[index] {
                    try request.append(wire)
                } else {
                    try request.append(operation)
                }
            } catch { return nil }
            guard request.count <= limit else { return nil }
        }
        let body = request.finish()
        return body.count <= limit ? body : nil
    }
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
    private var pending = [(operation: ItemOperation, encoded: [UInt8])]()
    private var pendingBytes = Self.overheadBytes

    init(client: CloudClient, container: ContainerID, head: CommitHead, limit: Int) {
        self.client = client
        self.container = container
        self.head = head
        self.limit = limit
    }

    mutating func add(_ operation: ItemOperation) async throws(CloudError) {
        // `nil`: it cannot even be encoded.
        let encoded = try? CommitWriter.encoded(operation)
        let bytes = encoded.map { $0.count + Self.overheadBytes }
        let fits = bytes.map { Self.overheadBytes + $0 <= limit } ?? false
        // Outcomes have the order of the operations: what is settled here comes after what waits.
        let mustSend = !fits || dependencies.isBlocked(operation) || pendingBytes + (bytes ?? 0) > limit
        if mustSend, !pending.isEmpty { try await sendPending() }
        if dependencies.isBlocked(operation) {
            note(.skipped, of: operation)
        } else if let encoded, let bytes, fits {
            pending.append((operation, encoded))
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
        var request = head.writer(capacity: pendingBytes)
        for operation in pending { request.append(encoded: operation.encoded) }
        let answer = try await client.send(request.finish(), for: pending.count, to: container, isLarge: true)
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
