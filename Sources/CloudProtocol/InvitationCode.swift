/// What a person types to bring a device into an account: a secret and, for a server with a self-signed certificate, how to know it.
///
/// As text: Crockford's base 32 in groups of five, `-` between them. Letters may be typed in either case, `O` for 0 and `I` or
/// `L` for 1, groups may be separated by blanks or not at all. The bytes: format version (1), flags (1: bit 0 = fingerprint),
/// secret (10), fingerprint (32 or none), CRC-16 of all before (2).
package struct InvitationCode: Hashable, Sendable {
    package static let formatVersion: UInt8 = 1
    package static let secretBytes = 10
    package static let fingerprintBytes = 32

    package let secret: [UInt8]
    /// SHA-256 of the certificate (DER) that the server shows; `nil` where TLS is not used or its certificate is trusted anyway.
    package let fingerprint: [UInt8]?

    /// `nil` for wrong lengths.
    package init?(secret: [UInt8], fingerprint: [UInt8]?) {
        guard secret.count == Self.secretBytes else { return nil }
        guard fingerprint == nil || fingerprint?.count == Self.fingerprintBytes else { return nil }
        self.secret = secret
        self.fingerprint = fingerprint
    }

    /// A code with a fresh secret.
    package init?(fingerprint: [UInt8]?) {
        var generator = SystemRandomNumberGenerator()
        let secret = (0..<Self.secretBytes).map { _ in UInt8.random(in: 0...255, using: &generator) }
        self.init(secret: secret, fingerprint: fingerprint)
    }

    package var text: String {
        var bytes = [Self.formatVersion, fingerprint == nil ? 0 : 1] + secret + (fingerprint ?? [])
        let check = checksum(bytes)
        bytes += [UInt8(check >> 8), UInt8(check & 0xFF)]
        let symbols = Base32.encode(bytes)
        let groups = stride(from: 0, to: symbols.count, by: 5).map { symbols[$0..<min($0 + 5, symbols.count)] }
        return String(decoding: Array(groups.joined(separator: [UInt8(ascii: "-")])), as: UTF8.self)
    }

    /// - Throws: in words for the person who typed it.
    package init(parsing text: String) throws(InvitationCodeError) {
        let bytes = try Base32.decode(text)
        guard !bytes.isEmpty else { throw .empty }
        guard bytes.count >= 4 else { throw .wrongLength }
        let body = bytes.dropLast(2)
        let check = bytes.suffix(2).reduce(UInt16(0)) { $0 << 8 | UInt16($1) }
        guard checksum(Array(body)) == check else { throw .mistyped }
        guard body[0] == Self.formatVersion else { throw .newer(version: body[0]) }
        let hasFingerprint = body[1] == 1
        guard body[1] <= 1, body.count == 2 + Self.secretBytes + (hasFingerprint ? Self.fingerprintBytes : 0) else {
            throw .wrongLength
        }
        secret = Array(body[2..<2 + Self.secretBytes])
        fingerprint = hasFingerprint ? Array(body[(2 + Self.secretBytes)...]) : nil
    }
}

/// Why a typed text is no invitation code.
package enum InvitationCodeError: Error, Hashable, Sendable {
    case empty
    case badSymbol(Character)
    case wrongLength
    case mistyped
    case newer(version: UInt8)
}

extension InvitationCodeError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .empty: "the invitation code is empty"
        case .badSymbol(let symbol): "the invitation code contains \"\(symbol)\", which no code does"
        case .wrongLength: "the invitation code is incomplete"
        case .mistyped: "the invitation code is mistyped or incomplete: its check does not match"
        case .newer(let version):
            "the invitation code has format \(version): it was made by a newer version of ubiquity"
        }
    }
}

/// CRC-16/XMODEM: finds every single mistyped symbol and every two that were exchanged.
private func checksum(_ bytes: [UInt8]) -> UInt16 {
    var remainder: UInt16 = 0
    for byte in bytes {
        remainder ^= UInt16(byte) << 8
        for _ in 0..<8 { remainder = remainder & 0x8000 == 0 ? remainder << 1 : remainder << 1 ^ 0x1021 }
    }
    return remainder
}

/// Crockford's base 32: no I, L, O or U.
private enum Base32 {
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var result = [UInt8]()
        var pending: UInt16 = 0
        var bits = 0
        for byte in bytes {
            pending = pending << 8 | UInt16(byte)
            bits += 8
            while bits >= 5 {
                bits -= 5
                result.append(alphabet[Int(pending >> UInt16(bits) & 31)])
            }
        }
        if bits > 0 { result.append(alphabet[Int(pending << UInt16(5 - bits) & 31)]) }
        return result
    }

    static func decode(_ text: String) throws(InvitationCodeError) -> [UInt8] {
        var result = [UInt8]()
        var pending: UInt16 = 0
        var bits = 0
        for character in text where !character.isWhitespace && character != "-" {
            guard let value = value(of: character) else { throw .badSymbol(character) }
            pending = pending << 5 | UInt16(value)
            bits += 5
            if bits >= 8 {
                bits -= 8
                result.append(UInt8(pending >> UInt16(bits) & 0xFF))
            }
        }
        // What is left over is padding of zeros; anything else is a symbol that no encoder writes.
        guard bits < 5, pending & (1 << UInt16(bits) - 1) == 0 else { throw .mistyped }
        return result
    }

    private static func value(of character: Character) -> Int? {
        switch character {
        case "o", "O": 0
        case "i", "I", "l", "L": 1
        default: character.uppercased().utf8.first.flatMap { character.isASCII ? alphabet.firstIndex(of: $0) : nil }
        }
    }
}
