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
        let answer = try await transport.send(request, token: credentials.token)
        return try decoding { () throws(WireError) in try ChangesPage(body: answer) }
    }

    package func children(
        _ container: ContainerID,
        of folders: [ItemID],
        after: Name?
    ) async throws(CloudError) -> ChildrenPage {
        let question = WireChildrenRequest(folders: folders, after: after)
        let request = try CloudRequest.post(CloudRoute.path(container, .children), question)
        let answer = try await transport.send(request, token: credentials.token)
        let page = try decoding { () throws(WireError) in try ChildrenPage(body: answer) }
        // An answer that leads no further would be asked for again and again.
        guard page.complete <= folders.count, page.complete > 0 || (page.last != nil && page.last != after) else {
            throw .malformed("\(page.complete) of \(folders.count) folders")
        }
        return page
    }

    func query(_ position: LogPosition?) -> [(name: String, value: String)] {
        guard let position else { return [] }
        return [
            (CloudRoute.Query.counter, "\(position.counter)"),
            (CloudRoute.Query.hash, Hexadecimal.encode(position.hash)),
        ]
    }

    package func confirm(
        _ container: ContainerID,
        revisions: [(item: ItemID, revision: RevisionID)]
    ) async throws(CloudError) -> [Bool] {
        var result = [Bool]()
        for part in slices(revisions, of: CloudLimits.idsPerRequest) {
            result += try await confirmPart(container, part)
        }
        return result
    }

    /// Halves the question until it is no more than the server looks through at once.
    private func confirmPart(
        _ container: ContainerID,
        _ part: [(item: ItemID, revision: RevisionID)]
    ) async throws(CloudError) -> [Bool] {
        var message = WireConfirmRequest()
        message.items = part.map { WireConfirmation(item: $0.item, revision: $0.revision) }
        let answer: WireConfirmResponse
        do throws(CloudError) {
            answer = try await send(
                try .post(CloudRoute.path(container, .confirm), message),
                WireConfirmResponse.self
            )
        } catch {
            guard case .rejected(FailureCode.tooLarge.rawValue, _) = error, part.count > 1 else { throw error }
            let half = part.count / 2
            let first = try await confirmPart(container, Array(part[..<half]))
            return first + (try await confirmPart(container, Array(part[half...])))
        }
        guard answer.whole.count == part.count else {
            throw .malformed("\(answer.whole.count) answers for \(part.count) revisions")
        }
        return answer.whole
    }

    package func versions(_ container: ContainerID, item: ItemID) async throws(CloudError) -> [ItemVersion] {
        let request = try CloudRequest.post(CloudRoute.path(container, .versions), WireVersionsRequest(item: item))
        let answer = try await send(request, WireVersionsResponse.self)
        return try decoding { () throws(WireError) in
            try answer.versions.map { (wire) throws(WireError) in try ItemVersion(wire: wire) }
        }
    }

    package func deleted(_ container: ContainerID) async throws(CloudError) -> [DeletedItem] {
        var request = CloudRequest(path: CloudRoute.path(container, .deleted))
        var result = [DeletedItem]()
        var told = 0
        while told < CloudLimits.deletedItems {
            let page = try await send(request, WireDeletedList.self)
            result += page.items.compactMap { listed($0) }
            told += page.items.count
            guard page.more, let last = page.items.last else { break }
            request.query = [
                (CloudRoute.Query.time, "\(last.deleted)"), (CloudRoute.Query.counter, "\(last.item.position)"),
            ]
        }
        return result
    }

    private func listed(_ wire: WireDeletedItem) -> DeletedItem? {
        do throws(WireError) { return try DeletedItem(wire: wire) } catch {
            logger.warning("a deleted item is left out of the list: \(error)")
            return nil
        }
    }
}
