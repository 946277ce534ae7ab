import ArgumentParser

/// How much there is of each kind; the same for `seed` and `run`.
struct Sizes: ParsableArguments {
    /// Files in `tree`, 4 KiB each, a hundred in a folder; also how many files the rows create, rename and unlink.
    @Option(help: "Files of 4 KiB.")
    var files = 5000

    /// Names in the folder `many`.
    @Option(help: "Names in the large folder.")
    var entries = 100_000

    /// The file `big`; a quarter of it is written through a mapping.
    @Option(help: "Size of the large file.")
    var mebibytes = 256

    /// C files in `source`.
    @Option(help: "C files to build.")
    var sources = 240

    func validate() throws {
        guard min(files, entries, sources) > 0, mebibytes >= 4 else { throw ValidationError("a size is too small") }
    }
}
