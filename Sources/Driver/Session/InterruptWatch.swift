import Glibc
import SystemPackage

/// Decides what an interrupt means for a request that waits.
///
/// The kernel sends one interrupt per request, for the first signal of any kind. A signal that ends the process frees it at once. One that
/// the program handles does not end the wait: EINTR from a file would surprise it, and SA_RESTART does not repeat it. Since no second
/// interrupt follows, not even for SIGKILL, the process is looked at ten times a second from then on; nothing else would tell.
struct InterruptWatch {
    private static let milliseconds = 100
    let deferrals: Deferrals

    /// Runs until the mailbox is closed.
    func run() {
        var watched = [UInt64]()
        var looked = ContinuousClock.now
        while true {
            switch deferrals.interrupted.next(milliseconds: watched.isEmpty ? nil : Self.milliseconds) {
            case .element(let number): if !settle(number) { watched.append(number) }
            case .timedOut: break
            case .closed: return
            }
            // Also where others are interrupted all the time.
            guard !watched.isEmpty, looked.duration(to: .now) >= .milliseconds(Self.milliseconds) else { continue }
            watched.removeAll { settle($0) }
            looked = .now
        }
    }

    /// Whether the request needs no more watching.
    private func settle(_ number: UInt64) -> Bool {
        guard let thread = deferrals.thread(of: number) else { return true }
        // Thread 0 is one that this namespace cannot see: better EINTR than a process that nobody can kill.
        guard thread != 0, let signals = PendingSignals(thread: thread), !signals.areFatal else {
            deferrals.end(number, .interrupted)
            return true
        }
        return false
    }
}

/// The signals of a thread as bit masks, signal 1 being bit 0.
struct PendingSignals: Equatable {
    var pending: UInt64 = 0
    var blocked: UInt64 = 0
    var caught: UInt64 = 0

    /// Whether one of them will end the process. Stop signals are none: a read from a disk is not cut short by them either.
    var areFatal: Bool {
        let kill = Self.mask(SIGKILL)
        let stops =
            Self.mask(SIGSTOP) | Self.mask(SIGTSTP) | Self.mask(SIGTTIN) | Self.mask(SIGTTOU) | Self.mask(SIGCONT)
        return pending & (kill | ~(blocked | caught | stops)) != 0
    }

    private static func mask(_ signal: Int32) -> UInt64 { 1 << UInt64(signal - 1) }

    /// From /proc/TID/status, which takes no lock of the process's memory; nil if the thread is gone.
    init?(thread: Int32) {
        guard let text = smallFile("/proc/\(thread)/status") else { return nil }
        self.init(status: text)
    }

    init(status text: String) {
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1)
            guard parts.count == 2 else { continue }
            let digits = String(
                decoding: parts[1].drop { $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: " ") },
                as: UTF8.self
            )
            guard let mask = UInt64(digits, radix: 16) else { continue }
            switch String(decoding: parts[0], as: UTF8.self) {
            case "SigPnd", "ShdPnd": pending |= mask
            case "SigBlk": blocked = mask
            case "SigCgt": caught = mask
            default: break
            }
        }
    }
}

/// A file of /proc, up to 8 KiB.
func smallFile(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var count = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: 8192) { room, initialized in
        count = read(descriptor, room.baseAddress, room.count)
        initialized = max(0, count)
    }
    return count < 0 ? nil : String(decoding: bytes, as: UTF8.self)
}
