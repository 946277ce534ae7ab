import ArgumentParser
import Glibc
import UbiquityControl

/// `ubiquity`: one executable, three roles. The first word says which.
@main
enum Main {
    static func main() async {
        let words = CommandWords.own
        do {
            var command = try UbiquityCommand.parseAsRoot(words)
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            end(.done)
        } catch let error as ControlError {
            Terminal.complain("\(error)")
            end(error.status)
        } catch let ended as Ended {
            end(ended.status)
        } catch let code as CommandExit {
            exit(code.code)
        } catch {
            endParsing(error, words)
        }
    }

    /// Help, the version, or words that make no sense.
    private static func endParsing(_ error: any Error, _ words: [String]) -> Never {
        guard UbiquityCommand.exitCode(for: error) != .success else {
            Terminal.write(UbiquityCommand.fullMessage(for: error))
            end(.done)
        }
        let verb = words.first.flatMap { word in UbiquityCommand.verbs.contains(word) ? word : nil }
        let message = UbiquityCommand.message(for: error).split(whereSeparator: \.isNewline).joined(separator: " ")
        let help = verb.map { "ubiquity \($0) --help" } ?? "ubiquity --help"
        Terminal.complain("\(ControlError(.usage, verb ?? "usage", message, remedy: "see `\(help)`"))")
        end(.usage)
    }

    private static func end(_ status: ExitStatus) -> Never {
        guard Terminal.failure != 0, status == .done else { exit(status.rawValue) }
        Terminal.complain("output: \(systemMessage(Terminal.failure))")
        exit(ExitStatus.failed.rawValue)
    }
}

/// Ends the program with a status, when everything has been said.
struct Ended: Error {
    var status: ExitStatus
}

/// Ends the program with the exit code of a command that it ran.
struct CommandExit: Error {
    var code: Int32
}
