import Glibc

/// The mounts of this machine.
package enum Mounts {
    /// Mount points at or below a path, the deepest last; of any type.
    package static func points(under folder: String) -> [String] {
        let lines = (try? Files.text("/proc/self/mountinfo").split(separator: "\n")) ?? []
        return lines.compactMap { line in
            let fields = line.split(separator: " ")
            guard fields.count > 4 else { return nil }
            let point = unescaped(fields[4])
            return point == folder || point.hasPrefix(folder + "/") ? point : nil
        }
    }

    package static func isMounted(_ point: String) -> Bool {
        points(under: point).contains(point)
    }

    /// Detaches a mount, whatever uses it. The service should be dead by then: its death ends every wait on it.
    package static func detach(_ point: String) {
        if umount2(point, Int32(MNT_DETACH)) != 0 {
            _ = try? run("fusermount3", "-uzq", point, limit: .seconds(10))
        }
    }

    /// mountinfo writes blanks and backslashes as octal.
    private static func unescaped(_ field: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(field.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\\"), let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8) {
                bytes.append(code)
                rest = rest.dropFirst(3)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
