/// Programs that are what they run: which they are, and where their command lines name it.
struct Interpreter: Sendable, Hashable {
    /// Where the name of what it runs is.
    private enum Place: Hashable {
        /// The first word that is no option.
        case script
        /// `-jar FILE`, or the main class.
        case archive
        /// The program's own name, or its first word: many programs in one (`busybox`).
        case ownName
    }

    private var place = Place.script
    /// One-letter options with the program itself as their value.
    private var code = ""
    /// One-letter options whose value names what is run (`python3 -m NAME`).
    private var naming = ""
    /// One-letter options with a value, that may be the next word.
    private var valued = ""
    /// One-letter options whose value is never the next word.
    private var attached = ""
    /// Long options whose value is the next word.
    private var long: Set<String> = []

    /// `nil` for a program that is itself.
    init?(executable: String) {
        let name = Program.name(of: executable)
        // python3.11, perl5.36.0, php8.2, pypy3
        let base = name.prefix { !($0.isNumber || $0 == "." || $0 == "-") }
        switch base {
        case "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "rbash", "fish":
            (code, valued, long) = ("c", "oO", ["--rcfile", "--init-file"])
        case "python", "pypy": (code, naming, valued) = ("c", "m", "WX")
        case "perl": (code, valued, attached) = ("eE", "I", "DFMdimx")
        case "ruby": (code, valued, attached) = ("e", "CEIr", "FKTWix")
        case "php": (code, naming, valued) = ("r", "f", "cdz")
        case "node", "nodejs": (code, valued, long) = ("ep", "r", ["--require", "--import", "--loader"])
        case "lua", "luajit": (code, valued) = ("e", "l")
        case "tclsh", "guile", "gjs", "mono", "dotnet", "kioworker", "kioslave": break
        case "java": (place, long) = (.archive, ["-cp", "-classpath", "--class-path", "-p", "--module-path"])
        case "busybox", "toybox", "coreutils": place = .ownName
        default: return nil
        }
    }

    /// What runs, by the words of a command line; `nil` if that is no file.
    func script(in words: [String]) -> String? {
        switch place {
        case .script: firstOperand(words.dropFirst())
        case .archive: archive(words.dropFirst())
        case .ownName: ownName(words)
        }
    }

    private func firstOperand(_ words: ArraySlice<String>) -> String? {
        var words = words
        while let word = words.popFirst() {
            if word == "--" { return words.first }
            guard word.hasPrefix("-") else { return word }
            if long.contains(word) { words = words.dropFirst() }
            // "-" is the standard input.
            guard word != "-" else { return nil }
            guard !word.hasPrefix("--") else { continue }
            switch cluster(word.dropFirst()) {
            case .flags: continue
            case .valueFollows: words = words.dropFirst()
            case .nameFollows: return words.first
            case .name(let name): return name
            case .code: return nil
            }
        }
        return nil
    }

    private enum Cluster {
        case flags, valueFollows, nameFollows, code
        case name(String)
    }

    /// Options of one letter each, in one word: `-euo`, `-Im`.
    private func cluster(_ letters: Substring) -> Cluster {
        for index in letters.indices {
            let letter = letters[index]
            let rest = letters[letters.index(after: index)...]
            if code.contains(letter) { return .code }
            if naming.contains(letter) { return rest.isEmpty ? .nameFollows : .name(String(rest)) }
            if valued.contains(letter) { return rest.isEmpty ? .valueFollows : .flags }
            if attached.contains(letter) { return .flags }
        }
        return .flags
    }

    private func archive(_ words: ArraySlice<String>) -> String? {
        var words = words
        while let word = words.popFirst() {
            if word == "-jar" { return words.first }
            guard word.hasPrefix("-") else { return word }
            if long.contains(word) { words = words.dropFirst() }
        }
        return nil
    }

    private func ownName(_ words: [String]) -> String? {
        guard let first = words.first.map(Program.name(of:)) else { return nil }
        return Interpreter(executable: first) == self ? words.dropFirst().first : first
    }
}
