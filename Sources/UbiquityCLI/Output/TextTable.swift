/// Aligned columns for people. The last column is as wide as it is.
struct TextTable {
    private var rows: [[String]] = []
    private let header: [String]
    /// Of what was written; a later part makes them wider where it must.
    private var widths: [Int]
    private var isBegun = false

    init(_ header: String...) {
        self.header = header
        widths = header.map { _ in 0 }
    }

    mutating func add(_ cells: String...) { rows.append(cells.map { Terminal.plain($0) }) }

    var isEmpty: Bool { rows.isEmpty }

    /// Writes what was added since the last time: of a long table one part after the other.
    mutating func write() {
        guard !rows.isEmpty else { return }
        let all = (isBegun ? [] : [header]) + rows
        widths = header.indices.map { column in max(widths[column], all.map { $0[column].count }.max() ?? 0) }
        for (index, row) in all.enumerated() {
            let cells = row.enumerated().map { column, cell in
                column == row.count - 1 ? cell : cell + String(repeating: " ", count: widths[column] - cell.count)
            }
            var line = cells.joined(separator: "  ")
            while line.last == " " { line.removeLast() }
            Terminal.write(!isBegun && index == 0 ? Terminal.styled(line, .dim) : line)
        }
        rows = []
        isBegun = true
    }
}
