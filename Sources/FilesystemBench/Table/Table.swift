/// Rows and peers: the native folder in absolute figures, all others as multiples of its time.
struct Table {
    private let results: Results
    private let native: String

    init(_ results: Results, native: String) {
        self.results = results
        self.native = native
    }

    var text: String {
        let peers = results.peers.filter { $0 != native }
        let lines = results.rows.map { row in
            [row, absolute(row), spread(row)] + peers.map { peer in ratio(row, peer) }
        }
        return aligned([["", native, "spread"] + peers] + lines)
    }

    private func absolute(_ row: String) -> String {
        guard let cell = results[row, native], let time = cell.median else { return "failed" }
        return switch cell.kind {
        case .metadata, .random: "\(rounded(time)) us"
        case .stream: "\(rounded(1_000_000 / time)) MiB/s"
        case .program: "\(rounded(time / 1000)) ms"
        }
    }

    /// The slowest native round against the fastest: how quiet the machine was.
    private func spread(_ row: String) -> String {
        guard let rounds = results[row, native]?.rounds, let low = rounds.min(), let high = rounds.max() else {
            return ""
        }
        return "x\(rounded(high / low))"
    }

    private func ratio(_ row: String, _ peer: String) -> String {
        if let ratio = results.ratio(row, peer, to: native) { return rounded(ratio) }
        return results[row, peer] == nil ? "failed" : "-"
    }
}

/// The geometric mean over the metadata rows, each peer against one.
struct Means {
    private let results: Results
    private let against: String

    init(_ results: Results, against: String) {
        self.results = results
        self.against = against
    }

    var text: String {
        let rows = results.rows.filter { row in results[row, against]?.kind == .metadata }
        guard !rows.isEmpty else { return "" }
        let lines = results.peers.map { peer in line(peer, rows) }
        return "\nmetadata rows, as multiples of \(against)'s time:\n"
            + aligned([["", "mean", "worst", "", "rows"]] + lines)
    }

    private func line(_ peer: String, _ rows: [String]) -> [String] {
        let ratios = rows.compactMap { row in results.ratio(row, peer, to: against).map { (row: row, ratio: $0) } }
        guard let worst = ratios.max(by: { $0.ratio < $1.ratio }) else { return [peer, "-", "-", "", "0"] }
        let mean = geometricMean(ratios.map(\.ratio))
        return [peer, rounded(mean), rounded(worst.ratio), worst.row, String(ratios.count)]
    }
}
