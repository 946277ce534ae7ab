internal import CZstd
internal import Synchronization

/// zstd with contexts that are used again: making one costs more than compressing a chunk.
enum Compression {
    private static let level: Int32 = 3
    private static let compressors = ContextPool()
    private static let decompressors = ContextPool()

    /// One zstd frame; `nil` if it would be longer than `limit` bytes, or looks as if it would.
    static func compress(_ plain: UnsafeRawBufferPointer, into limit: Int) -> [UInt8]? {
        guard limit > 0, !ByteSample.looksRandom(plain), let context = compressors.take() ?? ZSTD_createCCtx() else {
            return nil
        }
        defer { if !compressors.put(back: context) { ZSTD_freeCCtx(context) } }
        return fill(limit) {
            ZSTD_compressCCtx(context, $0.baseAddress, $0.count, plain.baseAddress, plain.count, level)
        }
    }

    /// Exactly `length` bytes; `nil` if the data is not a frame of that.
    static func decompress(_ data: ArraySlice<UInt8>, length: Int) -> [UInt8]? {
        guard let context = decompressors.take() ?? ZSTD_createDCtx() else { return nil }
        defer { if !decompressors.put(back: context) { ZSTD_freeDCtx(context) } }
        let plain = fill(length) { room in
            data.withUnsafeBytes {
                ZSTD_decompressDCtx(context, room.baseAddress, room.count, $0.baseAddress, $0.count)
            }
        }
        return plain?.count == length ? plain : nil
    }

    private static func fill(_ capacity: Int, _ work: (UnsafeMutableBufferPointer<UInt8>) -> Int) -> [UInt8]? {
        var failed = false
        let result = [UInt8](unsafeUninitializedCapacity: capacity) { room, count in
            let written = work(room)
            failed = ZSTD_isError(written) != 0
            count = failed ? 0 : written
        }
        return failed ? nil : result
    }
}

/// A few idle contexts. More than these are made when many threads compress at once, and freed after.
private final class ContextPool: Sendable {
    private static let limit = 8
    /// Guards the idle contexts, which are owned by the pool and used by nobody. A leaf: nothing else is locked or
    /// called under it.
    private let idle = Mutex(Idle())

    /// `OpaquePointer` is not `Sendable`, but an idle context has one owner at a time: the pool, or the thread that
    /// took it out.
    private struct Idle: @unchecked Sendable {
        var contexts: [OpaquePointer] = []
    }

    func take() -> OpaquePointer? {
        nonisolated(unsafe) var taken: OpaquePointer?
        idle.withLock { taken = $0.contexts.popLast() }
        return taken
    }

    /// Whether there was room; if not, the caller frees it.
    func put(back context: OpaquePointer) -> Bool {
        nonisolated(unsafe) let context = context
        return idle.withLock { state in
            guard state.contexts.count < Self.limit else { return false }
            state.contexts.append(context)
            return true
        }
    }
}

/// A look at some of the bytes: what is compressed or encrypted already has all of them about as often, and to find that out by compressing
/// takes a tenth of what a large file costs in all.
enum ByteSample {
    /// Bytes that are looked at, in runs that lie evenly apart.
    private static let count = 4096
    private static let run = 32
    /// Below it, compressing takes no time worth mentioning.
    private static let leastSize = 32 * 1024
    /// Of random bytes so many pairs of the sample are equal, on average; a sixteenth less entropy makes a third more of them.
    private static let equalPairs = count * (count - 1) / 2 / 256
    private static let tolerance = equalPairs / 16

    /// By the number of equal pairs, which is least for bytes that are all equally frequent.
    static func looksRandom(_ plain: UnsafeRawBufferPointer) -> Bool {
        guard plain.count >= leastSize else { return false }
        return withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 256) { counts in
            counts.initialize(repeating: 0)
            let runs = count / run
            let distance = (plain.count - run) / (runs - 1)
            for start in stride(from: 0, to: distance * runs, by: distance) {
                for byte in plain[start..<start + run] { counts[Int(byte)] += 1 }
            }
            let pairs = counts.reduce(0) { $0 + Int($1) * (Int($1) - 1) / 2 }
            return pairs <= equalPairs + tolerance
        }
    }
}
