import Glibc

/// A server that runs on its own (`ubiquity serve`), not embedded in a device.
package final class Server: Sendable {
    package let site: Site
    package let data: String
    package let environment: [String: String]
    package let url: String
    package let command: Command

    /// Starts it and waits for `listening on URL`.
    package init(_ site: Site, data: String, listen: String = "127.0.0.1:0") throws {
        self.site = site
        self.data = data
        var environment = Command.plainEnvironment
        environment["HOME"] = site.userFolder
        environment["UBIQUITY_HOME"] = data + ".home"
        self.environment = environment
        let command = try site.start(
            [TestSettings.binary, "serve", "--data", data, "--listen", listen],
            environment: environment
        )
        self.command = command
        url = try eventually("the server listens", within: .seconds(20)) {
            guard command.isRunning else { throw TestFailure("the server ended: \(try command.wait())") }
            let words = command.outputSoFar.split(whereSeparator: \.isWhitespace)
            // The last word may be half written.
            guard let position = words.firstIndex(of: "listening"), words.count > position + 2,
                command.outputSoFar.last?.isNewline == true
            else { return nil }
            return String(words[position + 2])
        }
    }

    /// Makes an account; gives the code that it prints.
    package func addAccount(_ name: String, _ more: String...) throws -> String {
        let result = try Command(
            [TestSettings.binary, "account", "add", name, "--data", data] + more,
            environment: environment
        ).wait()
        guard result.isSuccess, let code = Server.code(in: result.output) else {
            throw TestFailure("no code in: \(result)")
        }
        return code
    }

    /// The word that looks like a code: groups of capitals and digits.
    static func code(in output: String) -> String? {
        output.split(whereSeparator: \.isWhitespace).map(String.init)
            .filter { $0.count >= 16 && $0.contains("-") }
            .first { $0.allSatisfy { $0 == "-" || ($0.isASCII && ($0.isUppercase || $0.isNumber)) } }
    }

    package func kill() throws {
        command.send(SIGKILL)
        try command.wait(.seconds(10))
    }
}
