/// Command-line words may be any bytes, a parser of `String`s would repair what is not UTF-8, and then the file is not found.
///
/// Each byte that is not part of valid UTF-8 becomes the private scalar U+10FF00 + byte. Scalars of that range in the words
/// themselves are escaped the same way, byte by byte, so that `decode` always gives back exactly what `encode` got.
package enum ArgumentBytes {
    private static let first: UInt32 = 0x10FF00

    package static func encode(_ bytes: some Collection<UInt8>) -> String {
        let bytes = Array(bytes)
        if let text = String(validating: bytes, as: UTF8.self), !text.unicodeScalars.contains(where: isEscape) {
            return text
        }
        var result = String.UnicodeScalarView()
        var rest = bytes[...]
        while let byte = rest.first {
            let length = sequenceLength(byte)
            let sequence = rest.prefix(length)
            if sequence.count == length, let text = String(validating: sequence, as: UTF8.self),
                let scalar = text.unicodeScalars.first, !isEscape(scalar)
            {
                result.append(scalar)
                rest = rest.dropFirst(length)
            } else {
                // The range U+10FF00...U+10FFFF consists of valid scalars.
                if let scalar = Unicode.Scalar(first + UInt32(byte)) { result.append(scalar) }
                rest = rest.dropFirst()
            }
        }
        return String(result)
    }

    package static func decode(_ text: String) -> [UInt8] {
        var result = [UInt8]()
        for scalar in text.unicodeScalars {
            if isEscape(scalar) {
                result.append(UInt8(truncatingIfNeeded: scalar.value - first))
            } else {
                result += Array(String(scalar).utf8)
            }
        }
        return result
    }

    private static func isEscape(_ scalar: Unicode.Scalar) -> Bool { scalar.value >= first }

    private static func sequenceLength(_ byte: UInt8) -> Int {
        switch byte {
        case 0xC0..<0xE0: 2
        case 0xE0..<0xF0: 3
        case 0xF0...0xFF: 4
        default: 1
        }
    }
}
