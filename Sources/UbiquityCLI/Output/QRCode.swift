import CQRencode

/// A QR code in half blocks, two modules a character; light on dark, as terminals are.
enum QRCode {
    private static let margin = 2

    /// `nil` if the text is too long for one.
    static func lines(_ text: String) -> [String]? {
        guard let code = QRcode_encodeString(text, 0, QR_ECLEVEL_L, QR_MODE_8, 1) else { return nil }
        defer { QRcode_free(code) }
        let width = Int(code.pointee.width)
        guard let modules = code.pointee.data else { return nil }
        func isDark(_ row: Int, _ column: Int) -> Bool {
            guard (0..<width).contains(row), (0..<width).contains(column) else { return false }
            return modules[row * width + column] & 1 == 1
        }
        return stride(from: -margin, to: width + margin, by: 2).map { row in
            (-margin..<width + margin).map { column in
                switch (isDark(row, column), isDark(row + 1, column)) {
                case (false, false): "█"
                case (false, true): "▀"
                case (true, false): "▄"
                case (true, true): " "
                }
            }.joined()
        }
    }
}
