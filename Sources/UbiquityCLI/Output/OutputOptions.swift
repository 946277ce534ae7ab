import ArgumentParser
import UbiquityControl

struct OutputOptions: ParsableArguments {
    @Flag(help: "Print JSON.")
    var json = false

    /// Prints one form or the other.
    func print(_ value: @autoclosure () -> JSONValue, _ forPeople: () -> Void) {
        ProgressLine.shared.clear()
        if json { Terminal.write(value().prettyText) } else { forPeople() }
    }
}

/// How a path is shown to people: from the working folder on, where it lies in it.
enum ShownPath {
    private static let workingFolder: [UInt8]? = try? ItemArgument(resolving: Array(".".utf8)).path.bytes

    static func text(_ path: ControlPath) -> String {
        guard let folder = workingFolder, folder.count > 1, let names = path.relative(to: ControlPath(bytes: folder))
        else {
            return Terminal.plain(path.description)
        }
        let relative = names.isEmpty ? Array(".".utf8) : Array(names.joined(separator: [UInt8(ascii: "/")]))
        return Terminal.plain(String(decoding: relative, as: UTF8.self))
    }
}

/// Prints the errors of those paths that failed and ends with what they make together.
func conclude<Value>(_ outcomes: [PathOutcome<Value>], further: [ExitStatus] = []) throws {
    ProgressLine.shared.clear()
    for outcome in outcomes {
        if let error = outcome.error { Terminal.complain("\(error)") }
    }
    let status = ExitStatus.combining(outcomes.map(\.status) + further)
    if status != .done { throw Ended(status: status) }
}
