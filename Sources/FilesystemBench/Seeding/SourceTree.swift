/// A program in C as a kernel is one, only smaller: folders with an archive each, files that include many headers, which
/// include others, dependency files beside the objects, and one link of all. `make` builds it, `make clean` undoes that.
struct SourceTree {
    private static let filesInFolder = 20
    private static let headers = 120
    private static let functionsInFile = 12

    private let files: Int

    init(files: Int) { self.files = files }

    /// Makes `source` in the current folder.
    func make() throws(SystemError) {
        try makeFolder(Names.source)
        try makeFolder("\(Names.source)/include")
        for number in 0..<Self.headers { try makeFile("\(Names.source)/include/\(header(number))", headerText(number)) }
        for number in 0..<files {
            if number % Self.filesInFolder == 0 { try makeFolder("\(Names.source)/\(folder(number))") }
            try makeFile("\(Names.source)/\(file(number)).c", fileText(number))
        }
        try makeFile("\(Names.source)/Makefile", makefile())
    }

    private func header(_ number: Int) -> String { "h\(Names.padded(number, 3)).h" }
    private func folder(_ number: Int) -> String { "part\(Names.padded(number / Self.filesInFolder, 2))" }
    private func file(_ number: Int) -> String { "\(folder(number))/unit\(Names.padded(number, 4))" }

    /// Each header includes two of those before it.
    private func headerText(_ number: Int) -> String {
        let includes = number > 1 ? "#include \"\(header(number / 2))\"\n#include \"\(header(number / 3))\"\n" : ""
        let declarations = (0..<30).map { line in
            """
            #define VALUE_\(number)_\(line) \(number * 31 + line)
            int call_\(number)_\(line)(struct s\(number) *, long);

            """
        }
        return """
            #ifndef H\(number)
            #define H\(number)
            \(includes)
            struct s\(number) { long first; char name[\(number + 1)]; struct s\(number) *next; };
            \(declarations.joined())
            static inline long walk_\(number)(struct s\(number) *s)
            {
                long n = 0;
                for (; s; s = s->next) n += s->first;
                return n;
            }
            #endif

            """
    }

    private func fileText(_ number: Int) -> String {
        var numbers = Numbers(seed: UInt64(number))
        let used = (0..<15).map { _ in Int(numbers.next() % UInt64(Self.headers)) }
        let functions = (0..<Self.functionsInFile).map { function in
            """
            long unit\(number)_\(function)(struct s\(used[function]) *s, long n)
            {
                while (n-- > VALUE_\(used[function])_\(function))
                    n ^= walk_\(used[function])(s) + n * \(function + 3);
                return n;
            }

            """
        }
        return used.map { "#include \"\(header($0))\"\n" }.joined() + functions.joined()
    }

    private func makefile() -> String {
        let firsts = stride(from: 0, to: files, by: Self.filesInFolder)
        let archives = firsts.map { first in
            let objects = (first..<min(first + Self.filesInFolder, files)).map { "\(file($0)).o" }
            return "\(folder(first))/built-in.a: \(objects.joined(separator: " "))\n\trm -f $@\n\t$(AR) rcs $@ $^\n"
        }
        return """
            CFLAGS := -O0 -Iinclude -MMD
            image.o: \(firsts.map { "\(folder($0))/built-in.a" }.joined(separator: " "))
            \t$(LD) -r -o $@ --whole-archive $^
            \(archives.joined())
            clean:
            \trm -f image.o */*.o */*.d */*.a
            .PHONY: clean
            -include $(wildcard */*.d)

            """
    }
}
