package import Chunking
internal import CloudProtocol
internal import Logging
package import UbiquityModel

extension CloudClient {
    package func changes(
        _ container: ContainerID,
        since position: LogPosition?,
        limit: Int
    ) async throws(CloudError) -> ChangesPage {
        var request = CloudRequest(path: CloudRoute.path(container, .changes), query: query(position))
        request.query.append((CloudRoute.Query.limit, "\(limit)"))
        let answer = try await send(request, WireChanges.self)
        return try decoding { () throws(WireError) in try ChangesPage(wire: answer) }
    }

    func query(_ position: LogPosition?) -> [(name: String, value: String)] {
        guard let position else { return [] }
        return [
            (CloudRoute.Query.counter, "\(position.counter)"), (CloudRoute.Query.hash, Hexadecimal.encode(position.hash)),
        ]
    }

    package func commit(
        _ container: ContainerID,
        operations: [ItemOperation],
        frames: [ChunkFrame],
        clock: Timestamp
    ) async throws(CloudError) -> CommitAnswer {
        var message = WireCommitRequest()
        message.format = FormatVersion.cloudProtocol
        message.deviceClock = clock.nanoseconds
        message.chunks = frames.map { WireChunkFrame($0) }
        message.operations = operations.map { WireOperation($0) }
        var request = CloudRequest.post(CloudRoute.path(container, .commit), message.body)
        // Without chunks it is small, and goes with the questions.
        if !frames.isEmpty { request.pool = .uploads }
        let answer = try await send(request, WireCommitResponse.self)
        guard answer.outcomes.count == operations.count else {
            throw .malformed("\(answer.outcomes.count) outcomes for \(operations.count) operations")
        }
        return try decoding { () throws(WireError) in
            CommitAnswer(
                outcomes: try answer.outcomes.map { (wire) throws(WireError) in try OperationOutcome(wire: wire) },
                position: answer.position
            )
        }
    }

    package func confirm(
        _ container: ContainerID,
        revisions: [(item: ItemID, revision: RevisionID)]
    ) async throws(CloudError) -> [Bool] {
        var result = [Bool]()
        for part in slices(revisions, of: CloudLimits.idsPerRequest) {
            var message = WireConfirmRequest()
            message.items = part.map { WireConfirmation(item: $0.item, revision: $0.revision) }
            let answer = try await send(
                .post(CloudRoute.path(container, .confirm), message.body),
                WireConfirmResponse.self
            )
            guard answer.whole.count == part.count else {
                throw .malformed("\(answer.whole.count) answers for \(part.count) revisions")
            }
            result += answer.whole
        }
        return result
    }

    package func versions(_ container: ContainerID, item: ItemID) async throws(CloudError) -> [ItemVersion] {
        let request = CloudRequest.post(CloudRoute.path(container, .versions), WireVersionsRequest(item: item).body)
        let answer = try await send(request, WireVersionsResponse.self)
        return try decoding { () throws(WireError) in
            try answer.versions.map { (wire) throws(WireError) in try ItemVersion(wire: wire) }
        }
    }

    package func deleted(_ container: ContainerID) async throws(CloudError) -> [DeletedItem] {
        let answer = try await send(CloudRequest(path: CloudRoute.path(container, .deleted)), WireDeletedList.self)
        return answer.items.compactMap { wire in
            do throws(WireError) { return try DeletedItem(wire: wire) } catch {
                logger.warning("a deleted item is left out of the list: \(error)")
                return nil
            }
        }
    }
}
