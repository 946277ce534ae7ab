import ArgumentParser
import Glibc

struct TimeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "time",
        abstract: "Run a program, its output thrown away, and print the kind `program` and its microseconds."
    )

    @Argument(parsing: .postTerminator, help: "The program and its words.")
    var command: [String]

    func run() throws {
        guard let program = command.first else { throw ValidationError("no program") }
        var status: Int32 = 0
        let time = try elapsed { () throws(SystemError) in
            var child = try start(program)
            child = try check("waitpid", program, waitpid(child, &status, 0))
        }
        guard status == 0 else { throw CommandFailed(program: program, status: status) }
        print(Figure(.program, nanoseconds: time, count: 1))
    }

    private func start(_ program: String) throws(SystemError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        var words = command.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var child: pid_t = 0
        let code = posix_spawnp(&child, program, &actions, nil, &words, environ)
        guard code == 0 else { throw SystemError(call: "start", subject: program, errno: code) }
        return child
    }
}

/// A program that ended with another status than 0.
struct CommandFailed: Error, CustomStringConvertible {
    var program: String
    /// As `waitpid` gives it.
    var status: Int32

    var description: String {
        status & 0x7f == 0 ? "\(program) ended with \(status >> 8)" : "\(program) was ended by signal \(status & 0x7f)"
    }
}
