/// Aligned columns for people. The last column is as wide as it is.
struct TextTable {
    private var rows: [[String]] = []
    private let header: [String]

    init(_ header: String...) { self.header = header }

    mutating func add(_ cells: String...) { rows.append(cells.map { Terminal.plain($0) }) }

    var isEmpty: Bool { rows.isEmpty }

    func write() {
        guard !rows.isEmpty else { return }
        let all = [header] + rows
        let widths = header.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        for (index, row) in all.enumerated() {
            let cells = row.enumerated().map { column, cell in
                column == row.count - 1 ? cell : cell + String(repeating: " ", count: widths[column] - cell.count)
            }
            var line = cells.joined(separator: "  ")
            while line.last == " " { line.removeLast() }
            Terminal.write(index == 0 ? Terminal.styled(line, .dim) : line)
        }
    }
}
