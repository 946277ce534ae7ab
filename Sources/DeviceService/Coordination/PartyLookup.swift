internal import Dispatch
internal import Glibc
internal import SyncEngine
internal import Synchronization

/// Finds out to whom a request of an ordinary program belongs.
///
/// A process's environment is read on a thread of its own with a deadline: reading it takes that process's memory lock, which a
/// page fault may hold that waits for this very service.
final class PartyLookup: Sendable {
    private struct Cache {
        var claims: [ProcessIdentity: String?] = [:]
        var running = 0
    }

    private static let deadlineMilliseconds = 100
    /// Readers that hang; more are not started.
    private static let runningLimit = 16
    private static let cacheLimit = 1024
    private static let variable = Array("UBIQUITY_CLAIM=".utf8)

    /// Guards memory only; a leaf in the order of locks.
    private let cache = Mutex(Cache())

    /// The driver knows threads; a process is known by its first one.
    func process(ofThread thread: Int32) -> Int32 {
        guard let bytes = ProcessTable.read("/proc/\(thread)/status", limit: 4096) else { return thread }
        let prefix = Array("Tgid:".utf8)
        let line = bytes.split(separator: UInt8(ascii: "\n")).first { $0.starts(with: prefix) }
        let digits = line?.dropFirst(prefix.count).filter { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        return digits.flatMap { Int32(String(decoding: $0, as: UTF8.self)) } ?? thread
    }

    /// A process, its parent, and so on. Takes no lock of any of them.
    func ancestry(of process: Int32) -> [Int32] {
        var result = [Int32]()
        var current = process
        while current > 1, result.count < 256 {
            result.append(current)
            guard let fields = ProcessTable.fields(of: current) else { break }
            current = fields.parent
        }
        return result
    }

    /// What the process was started with in `UBIQUITY_CLAIM`.
    func claim(inEnvironmentOf process: Int32) -> String? {
        guard let identity = ProcessIdentity(pid: process) else { return nil }
        if let known = cache.withLock({ $0.claims[identity] }) { return known }
        let mayStart = cache.withLock { cache in
            guard cache.running < Self.runningLimit else { return false }
            cache.running += 1
            return true
        }
        guard mayStart else { return nil }
        let answered = DispatchSemaphore(value: 0)
        BlockingThread.start("ubi-party") {
            let claim = Self.read(process)
            self.cache.withLock { cache in
                cache.running -= 1
                if cache.claims.count >= Self.cacheLimit { cache.claims = [:] }
                cache.claims[identity] = .some(claim)
            }
            answered.signal()
        }
        _ = answered.wait(timeout: .now() + .milliseconds(Self.deadlineMilliseconds))
        return cache.withLock { $0.claims[identity] } ?? nil
    }

    private static func read(_ process: Int32) -> String? {
        // The environment's own limit is in the megabytes; what a shell passes is far below this.
        guard let bytes = ProcessTable.read("/proc/\(process)/environ", limit: 1 << 20) else { return nil }
        let entry = bytes.split(separator: 0).first { $0.starts(with: variable) }
        return entry.map { String(decoding: $0.dropFirst(variable.count), as: UTF8.self) }
    }
}
