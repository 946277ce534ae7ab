import Testing
import UbiquityControl

@Suite struct LineBufferTests {
    @Test(arguments: 1...7)
    func `lines come out whole, however they arrive`(size: Int) {
        let text = Array("one\n\ntwo three\nfour".utf8)
        var buffer = LineBuffer(limit: 100)
        var lines = [String]()
        for start in stride(from: 0, to: text.count, by: size) {
            buffer.append(text[start..<min(start + size, text.count)])
            while let line = buffer.next() { lines.append(String(decoding: line, as: UTF8.self)) }
        }
        #expect(lines == ["one", "", "two three"])
        buffer.append(Array("\n".utf8))
        #expect(buffer.next() == Array("four".utf8))
        #expect(buffer.next() == nil)
    }

    @Test func `a line without end is noticed`() {
        var buffer = LineBuffer(limit: 10)
        buffer.append(Array("0123456789".utf8))
        #expect(!buffer.isOverLimit)
        buffer.append(Array("0".utf8))
        #expect(buffer.isOverLimit)
    }
}
