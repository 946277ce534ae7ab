import Glibc
import TestSupport

/// Tries inputs, decoder by decoder, in a process that has nothing else to do.
struct FuzzRun {
    /// Tells the process that it is one, and where it writes down what it is at.
    static let variable = "UBIQUITY_TEST_FUZZ_RECORD"

    /// Marks what went wrong.
    static let again = "again with UBIQUITY_TEST_FUZZ="

    /// What a decoder may take beside what the process has before. Inputs have 64 KiB at most.
    private static let memoryBytes: rlim_t = 256 << 20

    private static let dataLimit = __rlimit_resource_t(RLIMIT_DATA.rawValue)

    /// The number of the decoder and the seed of the input. In memory that is a file's: it is there whatever becomes of the process.
    private let record: UnsafeMutablePointer<UInt64>
    private let parent = getppid()

    init(record path: String) throws {
        let file = try Files.open(path, O_RDWR)
        defer { close(file) }
        guard let room = mmap(nil, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), room != MAP_FAILED else {
            throw SystemError("mapping", path, errno)
        }
        record = room.assumingMemoryBound(to: UInt64.self)
    }

    func tryAll(first: UInt64, count: Int) async throws {
        try boundMemory()
        while record[0] < FuzzTarget.all.count {
            try await tryAll(FuzzTarget.all[Int(record[0])], first, max(1, count / FuzzTarget.all[Int(record[0])].cost))
            record[0] += 1
        }
    }

    private func tryAll(_ target: FuzzTarget, _ first: UInt64, _ count: Int) async throws {
        let start = ContinuousClock.now
        var accepted = 0
        for seed in first..<first + UInt64(count) {
            // Whoever waited was interrupted.
            guard getppid() == parent else { throw TestFailure("nobody waits for this") }
            record[1] = seed
            let input = try await target.input(seed)
            do {
                if try await target.check(input) { accepted += 1 }
            } catch {
                print("fuzz: \(target.name): \(error), \(Self.again)\(seed)")
                return
            }
        }
        let seconds = (ContinuousClock.now - start).seconds
        print(
            "fuzz: \(target.name): \(count) inputs, \(accepted) accepted, \(Int(Double(count) / max(seconds, 0.001))) a second"
        )
    }

    /// Who takes more dies of it.
    private func boundMemory() throws {
        let used = try Files.text("/proc/self/status").split(separator: "\n").first { $0.hasPrefix("VmData:") }?
            .split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap { rlim_t($0) }
        var limit = rlimit()
        guard getrlimit(Self.dataLimit, &limit) == 0 else {
            throw SystemError("asking for", "the bound of memory", errno)
        }
        limit.rlim_cur = min(limit.rlim_max, (used ?? 0) * 1024 + Self.memoryBytes)
        guard setrlimit(Self.dataLimit, &limit) == 0 else { throw SystemError("bounding", "memory", errno) }
    }

    // MARK: - For the process that waits

    static func makeRecord(_ path: String) throws { try Files.write([UInt8](repeating: 0, count: 16), to: path) }

    private static func number(_ path: String, _ index: Int) throws -> UInt64 {
        try Files.read(path).withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self) }
    }

    /// Whose turn it is; `nil` at the end.
    static func target(_ path: String) throws -> FuzzTarget? {
        let number = try number(path, 0)
        return number < FuzzTarget.all.count ? FuzzTarget.all[Int(number)] : nil
    }

    static func seed(_ path: String) throws -> UInt64 { try number(path, 1) }

    /// The next decoder's turn.
    static func skip(_ path: String) throws {
        let next = try number(path, 0) + 1
        try Files.write(withUnsafeBytes(of: next) { Array($0) } + [UInt8](repeating: 0, count: 8), to: path)
    }
}
