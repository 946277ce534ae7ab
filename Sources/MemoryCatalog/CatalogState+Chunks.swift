package import CatalogModel
package import UbiquityModel

extension CatalogState {
    package func intake(_ chunks: [ChunkSize], _ scope: Scope) throws(CatalogError) -> Intake {
        let (access, number) = try authorizeWriting(scope)
        let container = self[container: number]
        var unknown = Set<ChunkID>()
        let waning = Set(chunks.lazy.map(\.chunk).filter { container.candidates[$0] != nil })
        var bytes: Int64 = 0
        for chunk in chunks where !unknown.contains(chunk.chunk) && container.chunks[chunk.chunk] == nil {
            unknown.insert(chunk.chunk)
            bytes += Int64(chunk.length)
        }
        let room = bytes == 0 ? nil : room(account: access.account)
        return Intake(
            container: described(number, access.grant),
            unknown: unknown,
            waning: waning,
            isQuotaExceeded: room.map { bytes > $0 } ?? false
        )
    }

    package mutating func addChunks(
        _ chunks: [ChunkRecord],
        renewed: [ChunkID],
        _ scope: Scope,
        now: Timestamp
    ) throws(CatalogError) {
        let (access, number) = try authorizeWriting(scope)
        guard let added = add(chunks, container: number, account: access.account) else { throw .quotaExceeded }
        let waning = renewed.filter { self[container: number].candidates[$0] != nil }
        self[container: number].offer(added + waning, now: now)
    }

    package func missing(_ chunks: [ChunkID], _ scope: Scope, now: Timestamp) throws(CatalogError) -> [Int] {
        let container = try used(scope)
        return chunks.indices.filter { container.lacks(chunks[$0], now: now) }
    }

    package func chunks(_ chunks: [ChunkID], _ scope: Scope) throws(CatalogError) -> [ChunkRecord?] {
        let container = try used(scope)
        return chunks.map { container.chunks[$0] }
    }

    /// Records the chunks. Returns the new ones; `nil`, and nothing is recorded, if they would pass the account's quota.
    mutating func add(_ chunks: [ChunkRecord], container: Int64, account: Int64) -> [ChunkID]? {
        guard !chunks.isEmpty else { return [] }
        let new = self[container: container].unknown(among: chunks)
        let bytes = new.values.reduce(Int64(0)) { $0 + Int64($1.length) }
        if bytes > 0, let room = room(account: account), bytes > room { return nil }
        self[container: container].add(new, bytes: bytes)
        return Array(new.keys)
    }
}
