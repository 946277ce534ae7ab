import Logging
package import UbiquityModel

/// A page of all that the cloud has.
package struct ListedPage: Sendable {
    package var items: [RemoteItem]
    package var manifests: [ContentID: Manifest]
    /// After this page.
    package var position: LogPosition
    package var more: Bool

    package init(items: [RemoteItem], manifests: [ContentID: Manifest], position: LogPosition, more: Bool) {
        self.items = items
        self.manifests = manifests
        self.position = position
        self.more = more
    }
}

/// The connection is given up, since the server has been restored from a backup meanwhile.
package struct RestoredCloud: Error {}

/// A server that does not know this device's position: it was restored from a backup, or its log was cut.
extension Synchronizer {
    /// Takes the whole listing, and compares everything. What the server lacks is offered again.
    ///
    /// The position is written down in the end only: whatever interrupts this, the next connection begins it anew.
    /// - Returns: the position from which the feed goes on.
    package func compareWithRestored(
        _ nextPage: (LogPosition?) async throws -> ListedPage
    ) async throws -> LogPosition {
        logger.notice("the server does not know this device's position: comparing everything")
        var seen: Set<ItemID> = []
        var position: LogPosition?
        while true {
            let page = try await nextPage(position)
            for item in page.items { seen.insert(item.id) }
            try device.rewrite(remote: page.items, manifests: page.manifests)
            remoteWritten(page.items)
            position = page.position
            guard !page.more else { continue }
            // Missing there is not deleted: without a remote row the planner offers the item again.
            try device.removeRemote(try unlisted(seen), position: page.position)
            isCloudRestored = false
            handle(.remoteChanged)
            // What it waited for may be no more.
            for work in core.parkedWork.sorted() { handle(.woken(work)) }
            // What was agreed on is no more, here and there: everything is compared with the disk again.
            do { try scan(isAfterCleanStop: false) } catch {
                logger.error("the tree cannot be compared", metadata: ["why": "\(error)"])
            }
            return page.position
        }
    }

    private func unlisted(_ seen: Set<ItemID>) throws -> [ItemID] {
        var missing: [ItemID] = []
        var last: ItemID?
        while true {
            let page = try device.remoteIDs(after: last, limit: 1000)
            missing += page.filter { !seen.contains($0) }
            guard let end = page.last else { return missing }
            last = end
        }
    }
}
