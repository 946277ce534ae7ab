package import CatalogModel
package import UbiquityModel

/// What housekeeping asks of a catalogue besides.
package protocol HousekeptCatalog: PackCatalog {
    /// The clock was ahead: what says since when packs are empty, and until when chunks are offered, is lowered to what it would say now.
    func notAfter(_ now: Timestamp) async throws(CatalogError)
    /// What lies in some packs, by pack and place there. Reads all chunks' rows, once.
    func chunks(in packs: [UInt64]) async throws(CatalogError) -> [PackedChunk]
}
