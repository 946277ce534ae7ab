import Foundation
import Glibc

/// The machine's processes, as /proc shows them.
package enum Processes {
    package struct Found: Sendable, Hashable {
        package var pid: Int32
        package var words: [String]
        package var session: Int32
    }

    /// The processes that were started with `NAME=VALUE` in their environment, zombies left out.
    package static func having(_ name: String, _ value: String) -> [Found] {
        having { $0 == "\(name)=\(value)" }
    }

    /// The processes with a variable whose value starts with `prefix`.
    package static func having(_ name: String, prefix: String) -> [Found] {
        having { $0.hasPrefix("\(name)=\(prefix)") }
    }

    private static func having(_ matches: (String) -> Bool) -> [Found] {
        let entries = (try? Files.names(in: "/proc")) ?? []
        return entries.compactMap(Int32.init).sorted().compactMap { pid in
            guard fields("/proc/\(pid)/environ").contains(where: matches), exists(pid) else { return nil }
            return Found(pid: pid, words: fields("/proc/\(pid)/cmdline"), session: getsid(pid))
        }
    }

    /// Neither a zombie nor one that is being taken out of the table.
    package static func exists(_ pid: Int32) -> Bool {
        state(of: pid).map { $0 != "Z" && $0 != "X" } ?? false
    }

    /// Resident memory in bytes.
    package static func residentBytes(of pid: Int32) throws -> Int64 {
        let line = try Files.text("/proc/\(pid)/status").split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        let kibibytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int64($0) }
        guard let kibibytes else { throw TestFailure("process \(pid) says nothing of its memory") }
        return kibibytes * 1024
    }

    /// Bytes that the process has read by system calls so far, from files and from sockets.
    package static func bytesRead(by pid: Int32) throws -> Int64 {
        let line = try Files.text("/proc/\(pid)/io").split(separator: "\n").first { $0.hasPrefix("rchar:") }
        guard let bytes = line?.split(separator: " ").last.flatMap({ Int64($0) }) else {
            throw TestFailure("process \(pid) says nothing of its reads")
        }
        return bytes
    }

    /// Where a process and its threads are, for a report on a hang.
    package static func whereabouts(of pid: Int32) -> String {
        let threads = (try? Files.names(in: "/proc/\(pid)/task")) ?? []
        let lines = threads.prefix(40).map { thread in
            let task = "/proc/\(pid)/task/\(thread)"
            let name = (try? Files.text(task + "/comm"))?.trimmingCharacters(in: .newlines) ?? "?"
            let channel = (try? Files.text(task + "/wchan")) ?? "?"
            let stack = (try? Files.text(task + "/stack")).map {
                $0.split(separator: "\n").prefix(6).joined(separator: " < ")
            }
            return "  \(thread) \(name) \(channel) \(stack ?? "")"
        }
        return (["process \(pid): \(fields("/proc/\(pid)/cmdline").joined(separator: " "))"] + lines).joined(
            separator: "\n"
        )
    }

    private static func state(of pid: Int32) -> Character? {
        // "PID (NAME) STATE …": the name may contain anything, also parentheses.
        guard let text = try? Files.text("/proc/\(pid)/stat"), let end = text.lastIndex(of: ")") else { return nil }
        return text[end...].dropFirst(2).first
    }

    private static func fields(_ path: String) -> [String] {
        ((try? Files.read(path)) ?? []).split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    }
}
