import Glibc
import Synchronization

/// How many of this process's threads are at work beside those that answer programs. They say so themselves.
package enum Workload {
    private static let working = Atomic(0)
    private static let processors = sysconf(Int32(_SC_NPROCESSORS_ONLN))

    /// For the calling thread, until `end`.
    package static func begin() { working.add(1, ordering: .relaxed) }
    package static func end() { working.subtract(1, ordering: .relaxed) }

    /// A program and who answers it could have a processor each, with nobody else waiting for one.
    static var leavesTwoProcessors: Bool { working.load(ordering: .relaxed) + 2 <= processors }
}
