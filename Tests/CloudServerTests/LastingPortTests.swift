import Testing

@testable import CloudServer

@Suite struct LastingPortTests {
    @Test(
        arguments: [(nil, nil), ("20001", 20_001), ("65536", nil), ("-1", nil), ("x", nil), ("", nil)]
            as [(String?, Int?)]
    )
    func `a port that is remembered is one`(setting: String?, port: Int?) {
        #expect(LastingPort.remembered(setting) == port)
    }
}
