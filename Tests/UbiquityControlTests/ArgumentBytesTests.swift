import Testing
import UbiquityControl

/// A word of the command line is any bytes.
@Suite struct ArgumentBytesTests {
    struct Word: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]

        init(_ description: String, _ bytes: [UInt8]) {
            testDescription = description
            self.bytes = bytes
        }
    }

    static let words = [
        Word("nothing", []),
        Word("ASCII", Array("--timeout=3".utf8)),
        Word("umlauts", Array("Übung 🗂.txt".utf8)),
        Word("Latin-1", [0x66, 0xFC, 0x72]),
        Word("a lone continuation byte", [0x80]),
        Word("a sequence cut short", [0xE2, 0x82]),
        Word("an overlong slash", [0xC0, 0xAF]),
        Word("a surrogate", [0xED, 0xA0, 0x80]),
        Word("the escape range itself", Array("\u{10FF41}".utf8)),
        Word("the escape range and an invalid byte", Array("\u{10FFFF}".utf8) + [0xFF]),
        Word("every byte", Array(1...255)),
    ]

    @Test(arguments: words)
    func `what is decoded is what was encoded`(word: Word) {
        #expect(ArgumentBytes.decode(ArgumentBytes.encode(word.bytes)) == word.bytes)
    }

    @Test func `valid text stays as it is`() {
        #expect(ArgumentBytes.encode(Array("Übung 🗂.txt".utf8)) == "Übung 🗂.txt")
    }

    @Test func `random bytes survive`() {
        for _ in 0..<500 {
            let bytes = (0..<Int.random(in: 0...20)).map { _ in UInt8.random(in: 1...255) }
            #expect(ArgumentBytes.decode(ArgumentBytes.encode(bytes)) == bytes, "\(bytes)")
        }
    }
}
