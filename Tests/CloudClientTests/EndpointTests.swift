import Testing

@testable import CloudClient

@Suite struct EndpointTests {
    @Test(
        arguments: [
            ("https://host:8080", 8080), ("host", 443), ("http://host/", 80), ("https://host:65535", 65_535),
            ("https://[::1]:1", 1),
        ] as [(String, Int)]
    )
    func `an address has a port`(text: String, port: Int) throws {
        #expect(try Endpoint(parsing: text).port == port)
    }

    @Test(
        arguments: [
            "https://host:0", "https://host:65536", "https://host:8080080", "https://host:99999999999999999999",
            "https://host:-1", "ftp://host", "https://", "https://host?a", "https://host#a", "",
        ]
    )
    func `what is no address is refused`(text: String) {
        #expect(throws: CloudError.self) { try Endpoint(parsing: text) }
    }
}
