import Foundation
import Glibc
import TestSupport
import UbiquityModel

/// A request written by hand, for what no client of ours would send.
enum RawRequest {
    struct Answer: Sendable {
        var status: Int
        var body: [UInt8]
    }

    static func post(
        _ url: String,
        _ path: String,
        headers: [String: String] = [:],
        body: [UInt8],
        method: String = "POST"
    ) async throws -> Answer {
        guard let port = url.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw TestFailure("no port in \(url)")
        }
        let head =
            "\(method) \(path) HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: \(body.count)\r\n"
            + headers.map { "\($0): \($1)\r\n" }.joined() + "\r\n"
        // A thread of its own: these calls block, and the server needs Swift's pool.
        return try await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(returning: Result { try exchange(port, Array(head.utf8) + body) })
            }
        }.get()
    }

    /// The status of the answer to these bytes, after which nothing more is sent; `nil` if there is none.
    static func status(_ url: String, _ bytes: [UInt8]) async throws -> Int? {
        guard let port = url.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw TestFailure("no port in \(url)")
        }
        return try await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    returning: Result {
                        let descriptor = try connected(port)
                        defer { close(descriptor) }
                        let answer = answer(descriptor, bytes, isLast: true)
                        return String(decoding: answer, as: UTF8.self).split(separator: " ").dropFirst().first.flatMap {
                            Int($0)
                        }
                    }
                )
            }
        }.get()
    }

    static func connected(_ port: UInt16) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            let code = errno
            close(descriptor)
            throw SystemError("connecting", "\(port)", code)
        }
        return descriptor
    }

    private static func exchange(_ port: UInt16, _ request: [UInt8]) throws -> Answer {
        let descriptor = try connected(port)
        defer { close(descriptor) }
        let answer = answer(descriptor, request)
        let text = String(decoding: answer, as: UTF8.self)
        guard let status = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
            throw TestFailure("no answer: \(text.prefix(200))")
        }
        let separator = Array("\r\n\r\n".utf8)
        let start = answer.indices.first { answer[$0...].starts(with: separator) } ?? answer.count
        return Answer(status: status, body: Array(answer.dropFirst(start + 4)))
    }

    private static func answer(_ descriptor: Int32, _ request: [UInt8], isLast: Bool = false) -> [UInt8] {
        var sent = 0
        while sent < request.count {
            let count = request.withUnsafeBytes {
                send(descriptor, $0.baseAddress?.advanced(by: sent), $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            // The server may have answered and closed before it has read everything.
            if count <= 0 { break }
            sent += count
        }
        var answer = [UInt8]()
        var buffer = [UInt8](repeating: 0, count: 65_536)
        if isLast { shutdown(descriptor, Int32(SHUT_WR)) }
        while case let count = recv(descriptor, &buffer, buffer.count, 0), count > 0 { answer += buffer.prefix(count) }
        return answer
    }
}

/// A feed read byte by byte: clients of ours do not show signs of life.
final class RawFeed: Sendable {
    private let descriptor: Int32

    init(_ url: String, _ path: String, token: [UInt8]) throws {
        guard let port = url.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw TestFailure("no port in \(url)")
        }
        descriptor = try RawRequest.connected(port)
        let head =
            "GET \(path) HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \(Hexadecimal.encode(token))\r\n\r\n"
        let bytes = Array(head.utf8)
        guard send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw SystemError("sending", path, errno)
        }
    }

    deinit { close(descriptor) }

    /// Waits for so many pieces of the body.
    func messages(_ count: Int) async throws {
        let descriptor = descriptor
        try await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var pieces = 0
                var buffer = [UInt8](repeating: 0, count: 65_536)
                while pieces < count {
                    let count = recv(descriptor, &buffer, buffer.count, 0)
                    guard count > 0 else {
                        return continuation.resume(
                            returning: Result<Void, any Error>.failure(TestFailure("the feed ended"))
                        )
                    }
                    pieces += 1
                }
                continuation.resume(returning: .success(()))
            }
        }.get()
        withExtendedLifetime(self) {}
    }

}
