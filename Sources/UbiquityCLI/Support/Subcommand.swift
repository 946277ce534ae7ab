import CLinux
import Glibc
import UbiquityControl

/// A program that this one runs in the foreground.
enum Subcommand {
    /// Starts it, found in PATH, with this process's environment and more.
    /// - Returns: its process's number.
    static func start(_ words: [[UInt8]], adding variables: [(String, [UInt8])] = []) throws(ControlError) -> pid_t {
        let names = Set(variables.map(\.0))
        var environment = [[UInt8]]()
        var pointer = environ
        while let entry = pointer.pointee {
            let bytes = Array(UnsafeRawBufferPointer(start: entry, count: strlen(entry)))
            let name = String(decoding: bytes.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
            if !names.contains(name) { environment.append(bytes) }
            pointer += 1
        }
        environment += variables.map { Array("\($0.0)=".utf8) + $0.1 }
        let pid = withPointers(words) { words in withPointers(environment) { clinux_spawn_foreground(words, $0) } }
        guard pid > 0 else {
            throw ControlError(String(decoding: words.first ?? [], as: UTF8.self), systemMessage(pid))
        }
        return pid
    }

    static func run(_ words: [String]) throws(ControlError) -> Int32 {
        clinux_wait_child(try start(words.map { Array($0.utf8) }))
    }

    /// NULL-terminated C strings.
    private static func withPointers<Value>(
        _ strings: [[UInt8]],
        _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Value
    ) -> Value {
        var pointers = strings.map { string in strdup(string.map { CChar(bitPattern: $0) } + [0]) }
        pointers.append(nil)
        defer { for pointer in pointers { free(pointer) } }
        return pointers.withUnsafeBufferPointer { buffer in
            // The array holds at least the terminating NULL, so it has an address.
            guard let base = buffer.baseAddress else { preconditionFailure("an array with an element has no address") }
            return body(base)
        }
    }
}
