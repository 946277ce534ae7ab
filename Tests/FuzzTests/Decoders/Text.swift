import CloudProtocol
import FileCoordination
import UbiquityControl
import UbiquityModel

@testable import CloudClient
@testable import CloudServer
@testable import DeviceService

/// What people and programs type, and names.
extension FuzzTarget {
    static let text: [FuzzTarget] = [
        FuzzTarget("an invitation code", words: ["-", " ", "O", "l", "U", "\u{2160}", "ß", "0000"]) { arbitrary in
            let fingerprint = arbitrary.chance(2) ? arbitrary.bytes(32) : nil
            return Array((InvitationCode(secret: arbitrary.bytes(10), fingerprint: fingerprint)?.text ?? "").utf8)
        } check: { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            guard
                let code = accepted(
                    InvitationCodeError.self,
                    { () throws(InvitationCodeError) in
                        try InvitationCode(parsing: text)
                    }
                )
            else { return false }
            try promise(try InvitationCode(parsing: code.text) == code, "another code")
            return true
        },
        FuzzTarget(
            "a server's address",
            words: ["://", "[", "]", "::", "@", ":99999", ":-1", ":0", "%", "http", "#", "?"]
        ) {
            arbitrary in
            Array(arbitrary.pick(["https://host:8080", "http://[::1]:1/", "192.168.0.1", "https://a.b/c"]).utf8)
        } check: { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            guard let endpoint = accepted(CloudError.self, { () throws(CloudError) in try Endpoint(parsing: text) })
            else {
                return false
            }
            try promise(UInt16(exactly: endpoint.port) != nil, "port \(endpoint.port)")
            try promise(try Endpoint(parsing: endpoint.url) == endpoint, "another address")
            return true
        },
        FuzzTarget("an address to listen on", words: [":", "[", "]", "::1", "65536", "-1"]) { arbitrary in
            Array(arbitrary.pick(["0.0.0.0:80", "[::]:443", ":0", "host:65535"]).utf8)
        } check: { bytes in
            guard let address = ListenAddress(String(decoding: bytes, as: UTF8.self)) else { return false }
            return !address.host.isEmpty && address.port >= 0
        },
        FuzzTarget("a name", words: ["/", "..", ".", "\u{0}", "ä", ".tar.gz"]) { arbitrary in
            try arbitrary.name().bytes
        } check: { bytes in
            guard let name = accepted(NameError.self, { () throws(NameError) in try Name(bytes: bytes) }) else {
                return false
            }
            let labels = [String(decoding: bytes, as: UTF8.self), "x", String(repeating: "é", count: 60)]
            for other in [name.numbered(2), name.numbered(10_000)] + labels.map({ name.labelled($0) }) {
                try promise(try Name(bytes: other.bytes) == other && other != name, "\(other.bytes) is no other name")
            }
            return true
        },
        FuzzTarget("a path", words: ["/", "//", "..", ".", "\u{0}"]) { arbitrary in
            Array(try arbitrary.name().bytes + [UInt8(ascii: "/")] + arbitrary.name().bytes)
        } check: { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            guard let path = accepted(NameError.self, { () throws(NameError) in try ItemPath(parsing: text) }) else {
                return false
            }
            try promise(try ItemPath(parsing: path.description) == path, "another path")
            return true
        },
        FuzzTarget("identifiers and tokens", words: ["Bearer ", "0", "ffffffff", "g", "-1", "18446744073709551616"]) {
            arbitrary in
            Array("Bearer \(RevisionID(using: &arbitrary.generator))".utf8)
        } check: { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            if let id = RevisionID(text) { try promise(RevisionID(id.description) == id, "another id") }
            if let id = ContainerID(text) {
                try promise(!id.text.isEmpty && !id.text.contains("/") && !id.text.hasPrefix("."), "container \(id)")
            }
            _ = ClaimID(text)
            guard let token = CloudHeader.token(authorization: text) else { return false }
            try promise(CloudHeader.token(authorization: CloudHeader.bearer(token)) == token, "another token")
            return true
        },
        FuzzTarget(
            "sizes, times and words",
            words: ["1e999", "9999999999999999999", ".", "½", "P", "h", "nan", "-0", "٣"]
        ) {
            arbitrary in
            Array(arbitrary.pick(["1.5GiB", "45s", "2h", "8191PiB", "9223372036854775807"]).utf8)
        } check: { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            let size = ByteCount.parse(text)
            if let size { try promise(size >= 0 && !ByteCount.text(size).isEmpty, "a size of \(size)") }
            let span = TimeSpan.parse(text)
            if let span { try promise(TimeSpan.parse(TimeSpan.text(span)) == span, "another time") }
            try promise(ArgumentBytes.decode(ArgumentBytes.encode(bytes)) == bytes, "other words")
            let name = DeviceName.cleaned(text)
            try promise(!name.isEmpty && name.utf8.count <= 64 && !name.contains("/"), "a device called \(name)")
            return size != nil || span != nil
        },
        FuzzTarget("times") { arbitrary in
            withUnsafeBytes(of: arbitrary.integer()) { Array($0) }
        } check: { bytes in
            guard bytes.count >= 8 else { return false }
            let time = Timestamp(nanoseconds: bytes.withUnsafeBytes { $0.loadUnaligned(as: Int64.self) })
            let (seconds, nanoseconds) = time.parts
            try promise(Timestamp(seconds: seconds, nanoseconds: nanoseconds) == time, "another time")
            try promise(time.text.hasSuffix("Z") && !time.localText.isEmpty, "a time without an end")
            _ = RevisionID.made(at: time)
            return true
        },
    ]
}
