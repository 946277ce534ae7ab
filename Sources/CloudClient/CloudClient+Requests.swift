internal import CloudProtocol
internal import FoundationEssentials
internal import SwiftProtobuf
internal import UbiquityModel

extension CloudClient {
    /// The answer, as a message of the given kind.
    func send<Answer: Message>(_ request: CloudRequest, _ kind: Answer.Type) async throws(CloudError) -> Answer {
        let body = try await transport.send(request, token: credentials.token)
        return try decoding { () throws(WireError) in try Answer(body: body) }
    }

    /// For requests whose answer is their success.
    func send(_ request: CloudRequest) async throws(CloudError) {
        _ = try await transport.send(request, token: credentials.token)
    }
}

/// What cannot be decoded is an answer that makes no sense.
func decoding<Value>(_ body: () throws(WireError) -> Value) throws(CloudError) -> Value {
    do throws(WireError) { return try body() } catch { throw .malformed(error.description) }
}

/// Lists that are longer than a request may be go in several.
func slices<Element>(_ elements: [Element], of limit: Int) -> [[Element]] {
    stride(from: 0, to: elements.count, by: limit).map { Array(elements[$0..<min($0 + limit, elements.count)]) }
}
