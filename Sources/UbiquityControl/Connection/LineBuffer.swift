/// Cuts what arrives on a socket into lines.
package struct LineBuffer: Sendable {
    /// A longer line is an error: the sender is not one of ours.
    package let limit: Int
    private var bytes: [UInt8] = []
    private var start = 0
    private var searched = 0

    package init(limit: Int) { self.limit = limit }

    package var isOverLimit: Bool { bytes.count - start > limit }

    package mutating func append(_ new: some Collection<UInt8>) {
        if start > 0 {
            bytes.removeFirst(start)
            searched -= start
            start = 0
        }
        bytes += new
    }

    /// The next whole line, without its line feed.
    package mutating func next() -> [UInt8]? {
        guard let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) else {
            searched = bytes.count
            return nil
        }
        defer {
            start = end + 1
            searched = start
        }
        return Array(bytes[start..<end])
    }
}
