/// Names of devices are shown to people and stand in names of version files.
enum DeviceName {
    private static let longest = 64

    /// The name without what no file's name may hold, not too long, and never empty.
    static func cleaned(_ name: String) -> String {
        var result = ""
        for scalar in name.unicodeScalars {
            if result.utf8.count + String(scalar).utf8.count > longest { break }
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned, .surrogate: continue
            default: result.unicodeScalars.append(scalar == "/" ? "-" : scalar)
            }
        }
        let isBlank = result.allSatisfy { $0.isWhitespace || $0 == "." }
        return isBlank ? "device" : result
    }
}
