import ArgumentParser
import Glibc

/// A part of what a folder is filled with.
enum Seed: String, CaseIterable, ExpressibleByArgument {
    /// Texts of 4 KiB, a hundred in a folder.
    case tree
    /// One folder with many names of empty files.
    case many
    /// One large file.
    case big
    /// A program in C, to be built with make.
    case source

    /// Makes the part in the current folder.
    func make(_ sizes: Sizes) throws(SystemError) {
        switch self {
        case .tree: try makeTree(sizes.files)
        case .many: try makeMany(sizes.entries)
        case .big: try makeBig(sizes.mebibytes)
        case .source: try SourceTree(files: sizes.sources).make()
        }
    }

    private func makeTree(_ count: Int) throws(SystemError) {
        try makeFolder(Names.tree)
        for number in 0..<count {
            if number % Names.filesInFolder == 0 { try makeFolder(Names.folder(number / Names.filesInFolder)) }
            try makeFile(Names.file(number), text(number))
        }
    }

    private func makeMany(_ count: Int) throws(SystemError) {
        try makeFolder(Names.many)
        for number in 0..<count { try makeFile(Names.entry(number), "") }
    }

    private func makeBig(_ mebibytes: Int) throws(SystemError) {
        let file = try OpenFile(Names.big, O_CREAT | O_TRUNC | O_WRONLY)
        let buffer = Buffer(1 << 20)
        for number in 0..<mebibytes {
            buffer.fill(seed: UInt64(number))
            try file.write(buffer.pointer, 1 << 20)
        }
        try file.close()
    }

    /// 4096 bytes of words in lines.
    private func text(_ number: Int) -> String {
        let words = ["river", "stone", "letter", "window", "market", "silver", "garden", "winter", "paper", "bridge"]
        var numbers = Numbers(seed: UInt64(number))
        var text = number % 100 == 0 ? "\(Names.needle)\n" : ""
        while text.utf8.count < 4096 {
            let word = words[Int(numbers.next() % UInt64(words.count))]
            text += numbers.next() % 12 == 0 ? "\(word)\n" : "\(word) "
        }
        return String(text.utf8.prefix(4095).map { Character(Unicode.Scalar($0)) }) + "\n"
    }
}

func makeFolder(_ path: String) throws(SystemError) {
    _ = try check("mkdir", path, mkdir(path, 0o755))
}

func makeFile(_ path: String, _ content: String) throws(SystemError) {
    let file = try OpenFile(path, O_CREAT | O_EXCL | O_WRONLY)
    let bytes = Array(content.utf8)
    try file.write(bytes, bytes.count)
    try file.close()
}
