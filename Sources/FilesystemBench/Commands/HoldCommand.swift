import ArgumentParser
import Glibc

struct HoldCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hold",
        abstract: "Keep files in memory until ended: emptying the kernel's caches spares what is mapped."
    )

    @Argument(help: "The programs that are measured, or measured with.")
    var files: [String]

    func run() throws {
        for path in files { try hold(path) }
        while true { pause() }
    }

    private func hold(_ path: String) throws(SystemError) {
        let file = try OpenFile(path, O_RDONLY)
        let size = Int(try check("seek", path, lseek(file.descriptor, 0, SEEK_END)))
        // Stays until the program ends.
        let address = mmap(nil, size, PROT_READ, MAP_SHARED | MAP_POPULATE, file.descriptor, 0)
        guard address != MAP_FAILED else { throw SystemError(call: "mmap", subject: path, errno: errno) }
        try file.close()
    }
}
