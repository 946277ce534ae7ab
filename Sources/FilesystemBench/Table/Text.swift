import Glibc

/// Columns with two blanks between them: the first to the left, the others to the right.
func aligned(_ lines: [[String]]) -> String {
    let widths = (lines.first ?? []).indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    return lines.map { line in
        line.indices.map { column in
            let blanks = String(repeating: " ", count: widths[column] - line[column].count)
            return column == 0 ? line[column] + blanks : blanks + line[column]
        }.joined(separator: "  ")
    }.joined(separator: "\n")
}

/// Three digits that count: 0.95, 12.3, 148.
func rounded(_ value: Double) -> String {
    let digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0
    let scale = pow(10, Double(digits))
    let scaled = Int((value * scale).rounded())
    guard digits > 0 else { return String(scaled) }
    return "\(scaled / Int(scale)).\(Names.padded(scaled % Int(scale), digits))"
}

func geometricMean(_ values: [Double]) -> Double {
    exp(values.reduce(0) { $0 + log($1) } / Double(values.count))
}
