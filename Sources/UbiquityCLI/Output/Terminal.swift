import CLinux
import Glibc
import Synchronization
import UbiquityControl

/// Output for people: coloured, and with progress, on a terminal only.
enum Terminal {
    static let outputIsTerminal = isatty(STDOUT_FILENO) == 1
    static let errorsAreTerminal = isatty(STDERR_FILENO) == 1
    private static let mayColour = getenv("NO_COLOR") == nil

    enum Style: String {
        case bold = "1"
        case red = "31"
        case green = "32"
        case yellow = "33"
        case dim = "2"
    }

    /// Why not all of the output was written, as a negative error number: nobody takes a part of it for all.
    static var failure: Int32 { failed.load(ordering: .relaxed) }
    private static let failed = Atomic<Int32>(0)

    static func write(_ text: String) { write(Array((text + "\n").utf8), to: STDOUT_FILENO) }

    /// One line on stderr, as all errors are. Names in it may come from another device.
    static func complain(_ text: String) {
        ProgressLine.shared.clear()
        write(Array("ubiquity: \(plain(text))\n".utf8), to: STDERR_FILENO)
    }

    /// Something to know, beside the output that scripts read.
    static func note(_ text: String) { write(Array((text + "\n").utf8), to: STDERR_FILENO) }

    /// Asks where there is somebody to ask. Scripts that say it mean it.
    static func confirm(_ question: String) throws(ControlError) {
        guard isatty(STDIN_FILENO) == 1, errorsAreTerminal else { return }
        write(Array("\(question) [y/N] ".utf8), to: STDERR_FILENO)
        let answer = readLine() ?? ""
        guard ["y", "yes"].contains(answer.lowercased()) else { throw ControlError("nothing", "was done") }
    }

    static func styled(_ text: String, _ style: Style) -> String {
        outputIsTerminal && mayColour ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// What comes from elsewhere (names, messages) must not move the cursor or end the line.
    static func plain(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else { return text }
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            result.append(scalar.properties.generalCategory == .control ? "\u{FFFD}" : scalar)
        }
        return String(result)
    }

    static func write(_ bytes: [UInt8], to descriptor: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { clinux_write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else {
                // The reader has gone (`| head`): there is nobody left to tell.
                if descriptor == STDOUT_FILENO, count != -Int64(EPIPE) {
                    failed.store(Int32(truncatingIfNeeded: count), ordering: .relaxed)
                }
                return
            }
            rest = rest.dropFirst(Int(count))
        }
    }
}
