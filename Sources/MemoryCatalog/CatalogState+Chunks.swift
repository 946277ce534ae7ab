package import CatalogModel
package import UbiquityModel

extension CatalogState {
    package func intake(_ chunks: [ChunkSize], _ scope: Scope) throws(CatalogError) -> Intake {
        let (access, number) = try authorizeWriting(scope)
        let container = self[container: number]
        var unknown = Set<ChunkID>()
        var bytes: Int64 = 0
        for chunk in chunks where !unknown.contains(chunk.chunk) && container.chunks[chunk.chunk] == nil {
            unknown.insert(chunk.chunk)
            bytes += Int64(chunk.length)
        }
        let room = bytes == 0 ? nil : room(account: access.account)
        return Intake(
            container: described(number, access.grant),
            unknown: unknown,
            isQuotaExceeded: room.map { bytes > $0 } ?? false
        )
    }

    package mutating func addChunks(_ chunks: [ChunkRecord], _ scope: Scope) throws(CatalogError) {
        let (access, number) = try authorizeWriting(scope)
        guard add(chunks, container: number, account: access.account) else { throw .quotaExceeded }
    }

    package func missing(_ chunks: [ChunkID], _ scope: Scope) throws(CatalogError) -> [Int] {
        let container = try used(scope)
        return chunks.indices.filter { container.chunks[chunks[$0]] == nil }
    }

    package func chunks(_ chunks: [ChunkID], _ scope: Scope) throws(CatalogError) -> [ChunkRecord?] {
        let container = try used(scope)
        return chunks.map { container.chunks[$0] }
    }

    /// Records the chunks. `false`, and nothing is recorded, if they would pass the account's quota.
    mutating func add(_ chunks: [ChunkRecord], container: Int64, account: Int64) -> Bool {
        guard !chunks.isEmpty else { return true }
        let new = self[container: container].unknown(among: chunks)
        let bytes = new.values.reduce(Int64(0)) { $0 + Int64($1.length) }
        if bytes > 0, let room = room(account: account), bytes > room { return false }
        self[container: container].add(new, bytes: bytes)
        return true
    }
}
