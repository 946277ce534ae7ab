package import CatalogModel
package import Reconciliation
package import UbiquityModel

/// What is kept no longer. The steps are those of the catalogue on a disk.
extension CatalogState {
    package mutating func discardVersions(
        _ rules: RetentionRules,
        after: ItemPosition?,
        now: Timestamp
    ) -> HousekeepingPage<ItemPosition> {
        var page = HousekeepingPage<ItemPosition>()
        var looked = 0
        for number in containersInUse(from: after?.container) {
            let start = number == after?.container ? after?.item : nil
            for item in self[container: number].itemsWithSavedVersions(after: start) {
                page.discarded += self[container: number].discardVersions(of: item, rules, now: now)
                looked += 1
                guard looked < HousekeepingSizes.items else {
                    page.next = ItemPosition(container: number, item: item)
                    return page
                }
            }
        }
        return page
    }

    package mutating func discardDeleted(
        in time: Range<Timestamp>,
        after: TombstonePosition?,
        now: Timestamp
    ) -> HousekeepingPage<TombstonePosition> {
        var page = HousekeepingPage<TombstonePosition>()
        var looked = 0
        for number in containersInUse(from: after?.container) {
            let start = number == after?.container ? after?.deleted : nil
            for tombstone in self[container: number].tombstones(in: time, after: start) {
                page.discarded += self[container: number].discardAllVersions(of: tombstone.item, now: now)
                looked += 1
                guard looked < HousekeepingSizes.items else {
                    page.next = TombstonePosition(container: number, deleted: tombstone.position)
                    return page
                }
            }
        }
        return page
    }

    package mutating func collectChunks(after: ChunkPosition?, now: Timestamp) -> HousekeepingPage<ChunkPosition> {
        var page = HousekeepingPage<ChunkPosition>()
        for number in containersInUse(from: after?.container) {
            let start = number == after?.container ? after?.chunk : nil
            let chunks = Array(self[container: number].candidates(after: start).prefix(HousekeepingSizes.candidates))
            guard let last = chunks.last else { continue }
            page.discarded = self[container: number].collect(chunks, now: now)
            page.next = ChunkPosition(container: number, chunk: last)
            return page
        }
        return page
    }

    private func containersInUse(from first: Int64?) -> [Int64] {
        containers.indices.map { Int64($0) + 1 }.filter { $0 >= first ?? 1 && !self[container: $0].isRemoved }
    }
}
