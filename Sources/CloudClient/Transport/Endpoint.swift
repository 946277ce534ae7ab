internal import FoundationEssentials

/// Where a server is.
struct Endpoint: Hashable, Sendable {
    /// Without a slash at its end.
    let url: String
    let host: String
    let port: Int
    let usesTLS: Bool

    /// For people.
    var name: String { "\(host):\(port)" }

    /// Takes `http://` and `https://`; without a scheme it is `https://`.
    init(parsing text: String) throws(CloudError) {
        var text = text.contains("://") ? text : "https://\(text)"
        while text.hasSuffix("/") { text.removeLast() }
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            let host = url.host(), !host.isEmpty, url.query() == nil, url.fragment() == nil,
            (1...65_535).contains(url.port ?? (Self.namesPort(text) ? 0 : 1))
        else { throw .notFound("\"\(text)\" is no address of a server: it looks like https://host:port") }
        self.url = text
        self.host = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        usesTLS = scheme == "https"
        port = url.port ?? (usesTLS ? 443 : 80)
    }

    /// Whether there is a port in the address, also one that is no number.
    private static func namesPort(_ text: String) -> Bool {
        let authority = text.split(separator: "/").dropFirst().first ?? ""
        // The colons of an IPv6 address are in brackets.
        let bracket = authority.lastIndex(of: "]") ?? authority.startIndex
        return authority[bracket...].contains(":")
    }
}
