import Glibc

/// The names below a seeded folder.
enum Names {
    static let tree = "tree"
    static let many = "many"
    static let big = "big"
    static let source = "source"
    /// In every hundredth file of `tree`, for `grep`.
    static let needle = "quixotic"

    static let filesInFolder = 100

    static func folder(_ number: Int) -> String { "\(tree)/d\(padded(number, 4))" }
    static func file(_ number: Int) -> String { "\(folder(number / filesInFolder))/f\(padded(number, 6)).txt" }
    static func entry(_ number: Int) -> String { "\(many)/e\(padded(number, 6))" }

    static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

/// Paths as C strings, made before the clock starts.
struct Paths: ~Copyable {
    private let pointers: [UnsafeMutablePointer<CChar>]

    init(_ count: Int, _ path: (Int) -> String) {
        pointers = (0..<count).compactMap { strdup(path($0)) }
    }

    deinit {
        for pointer in pointers { free(pointer) }
    }

    @inline(__always)
    func each(_ body: (UnsafePointer<CChar>) throws(SystemError) -> Void) throws(SystemError) {
        for pointer in pointers { try body(pointer) }
    }

    /// Pairs of the same number; both have the same count.
    @inline(__always)
    func each(
        with others: borrowing Paths,
        _ body: (UnsafePointer<CChar>, UnsafePointer<CChar>) throws(SystemError) -> Void
    ) throws(SystemError) {
        for number in pointers.indices { try body(pointers[number], others.pointers[number]) }
    }
}
