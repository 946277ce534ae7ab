/// One measurement: always a time, so that a ratio above one always means slower.
struct Figure: CustomStringConvertible {
    /// What the time is for.
    enum Kind: String {
        /// One operation on names or attributes; these rows make the mean.
        case metadata
        /// One read or write of a block somewhere in a file.
        case random
        /// One MiB.
        case stream
        /// All of a program.
        case program
    }

    var kind: Kind
    var microseconds: Double

    init(_ kind: Kind, _ microseconds: Double) {
        self.kind = kind
        self.microseconds = microseconds
    }

    /// Figures a time that `count` operations (or MiB) took.
    init(_ kind: Kind, nanoseconds: UInt64, count: Int) {
        self.init(kind, Double(nanoseconds) / 1000 / Double(count))
    }

    /// Reads what `description` wrote.
    init?(_ words: some Collection<Substring>) {
        guard words.count == 2, let first = words.first, let kind = Kind(rawValue: String(first)) else { return nil }
        guard let microseconds = words.dropFirst().first.flatMap({ Double($0) }) else { return nil }
        self.init(kind, microseconds)
    }

    var description: String { "\(kind.rawValue) \(microseconds)" }
}
