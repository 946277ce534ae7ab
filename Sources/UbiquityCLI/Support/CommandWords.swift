import Glibc
import UbiquityControl

/// The program's own words, with every byte of them (`CommandLine.arguments` would repair what is not UTF-8).
enum CommandWords {
    static let own: [String] = (1..<max(1, Int(CommandLine.argc))).compactMap { index in
        guard let pointer = CommandLine.unsafeArgv[index] else { return nil }
        return ArgumentBytes.encode(UnsafeRawBufferPointer(start: pointer, count: strlen(pointer)))
    }
}

extension ItemArgument {
    /// A path as the parser gives it.
    init(word: String) throws(ControlError) { try self.init(resolving: ArgumentBytes.decode(word)) }
}
