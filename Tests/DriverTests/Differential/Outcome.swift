import Foundation
import Glibc

/// What a step gave: all that a program can tell.
struct Outcome: Equatable, CustomStringConvertible {
    var text: String
    private(set) var isFailure = false
    /// Data, not copied into the text.
    var bytes = Data()

    init(_ text: String, _ bytes: Data = Data()) {
        self.text = text
        self.bytes = bytes
    }

    /// A system call's result; its error if it failed just now.
    init(_ result: Int) { self.init(negated: result < 0 ? -Int64(errno) : Int64(result)) }
    init(_ result: Int32) { self.init(Int(result)) }

    /// Of what returns -errno.
    init(negated result: Int64) {
        isFailure = result < 0
        text = isFailure ? Self.name(of: Int32(-result)) : "\(result)"
    }

    init(negated result: Int32) { self.init(negated: Int64(result)) }

    var description: String { bytes.isEmpty ? text : "\(text), \(bytes.count) bytes" }

    /// Where the bytes begin to differ.
    func difference(from other: Outcome) -> String {
        guard text == other.text, bytes != other.bytes else { return "" }
        let count = min(bytes.count, other.bytes.count)
        let first =
            (0..<count).first { bytes[bytes.startIndex + $0] != other.bytes[other.bytes.startIndex + $0] } ?? count
        let here = Array(bytes.dropFirst(first).prefix(8))
        let there = Array(other.bytes.dropFirst(first).prefix(8))
        return "; from byte \(first) on \(here), not \(there)"
    }

    static func name(of error: Int32) -> String { String(cString: strerror(error)) }
}
