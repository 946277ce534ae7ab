internal import FoundationEssentials
package import UbiquityModel

extension OperationOutcome {
    package init(wire: WireOutcome) throws(WireError) {
        switch wire.outcome {
        case .committed(let item): self = .committed(try RemoteItem(wire: item))
        case .missingChunks(let missing):
            self = .missingChunks(
                try missing.chunks.map { (chunk) throws(WireError) in try ChunkID(wire: chunk, "a chunk's id") }
            )
        case .nameTakenBy(let holder): self = .nameTaken(by: try ItemID(wire: holder, "the holder's id"))
        case .parentMissing: self = .parentMissing
        case .notEmpty: self = .notEmpty
        case .cycle: self = .cycle
        case .noSuchItem: self = .noSuchItem
        case .superseded(let item): self = .superseded(try RemoteItem(wire: item))
        case .quotaExceeded: self = .quotaExceeded
        case .invalid(let why): self = .invalid(why)
        case .skipped: self = .skipped
        case nil: throw .missing("the outcome of an operation")
        }
    }
}

extension WireOutcome {
    /// - Parameter manifest: of the content of the item in the outcome, if it is at hand.
    package init(_ outcome: OperationOutcome, manifest: Manifest? = nil) {
        self.init()
        switch outcome {
        case .committed(let item): committed = WireItem(item, manifest: manifest)
        case .missingChunks(let chunks):
            var missing = WireMissing()
            missing.chunks = chunks.map(\.wire)
            missingChunks = missing
        case .nameTaken(let holder): nameTakenBy = holder.wire
        case .parentMissing: parentMissing = true
        case .notEmpty: notEmpty = true
        case .cycle: cycle = true
        case .noSuchItem: noSuchItem = true
        case .superseded(let item): superseded = WireItem(item, manifest: manifest)
        case .quotaExceeded: quotaExceeded = true
        case .invalid(let why): invalid = why
        case .skipped: skipped = true
        }
    }
}
