/// All figures of a run, by row and peer, each in the order of its first appearance.
struct Results {
    struct Cell {
        var kind: Figure.Kind
        /// In microseconds; empty where every round failed.
        var rounds: [Double] = []

        var median: Double? {
            let sorted = rounds.sorted()
            guard !sorted.isEmpty else { return nil }
            return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
        }
    }

    private(set) var rows: [String] = []
    private(set) var peers: [String] = []
    private var cells: [String: [String: Cell]] = [:]

    /// A line of figures, or `ROW PEER failed`.
    mutating func add(_ line: String) {
        let words = line.split(separator: " ")
        guard words.count >= 3 else { return }
        let (row, peer) = (String(words[0]), String(words[1]))
        if !rows.contains(row) { rows.append(row) }
        if !peers.contains(peer) { peers.append(peer) }
        guard let figure = Figure(words.dropFirst(2)) else { return }
        cells[row, default: [:]][peer, default: Cell(kind: figure.kind)].rounds.append(figure.microseconds)
    }

    subscript(row: String, peer: String) -> Cell? { cells[row]?[peer] }

    /// How many times as long the peer takes as the other.
    func ratio(_ row: String, _ peer: String, to other: String) -> Double? {
        guard let time = self[row, peer]?.median, let base = self[row, other]?.median, base > 0 else { return nil }
        return time / base
    }
}
