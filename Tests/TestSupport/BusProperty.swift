import CSystemd
import Glibc
import Synchronization

/// A service on a bus that has one property, and tells of its changes.
package final class BusProperty: Sendable {
    package enum Value: Sendable {
        case number(UInt32)
        case boolean(Bool)

        fileprivate var type: String {
            switch self {
            case .number: "u"
            case .boolean: "b"
            }
        }

        fileprivate var raw: UInt32 {
            switch self {
            case .number(let number): number
            case .boolean(let isTrue): isTrue ? 1 : 0
            }
        }
    }

    private struct State: Sendable {
        var value: Value
        var isChanged = false
        var isEnding = false
        var hasEnded = false
    }

    /// So often the thread looks for what it is asked, in microseconds.
    private static let tick: UInt64 = 10_000

    private let service: String
    private let path: String
    private let property: String
    private let state: Mutex<State>

    init(_ address: String, _ service: String, _ path: String, _ property: String, _ value: Value) throws {
        (self.service, self.path, self.property) = (service, path, property)
        state = Mutex(State(value: value))
        var opened: OpaquePointer?
        try Self.check(sd_bus_new(&opened), "making a connection")
        guard let bus = opened else { throw TestFailure("no connection") }
        try Self.check(sd_bus_set_address(bus, address), "setting the address")
        try Self.check(sd_bus_set_bus_client(bus, 1), "greeting")
        try Self.check(sd_bus_start(bus), "connecting")
        // The thread keeps this object alive, and ends with the connection.
        let me = Unmanaged.passRetained(self).toOpaque()
        try Self.check(
            sd_bus_add_object(
                bus,
                nil,
                path,
                { message, me, _ in
                    guard let message, let me else { return 0 }
                    return Unmanaged<BusProperty>.fromOpaque(me).takeUnretainedValue().answer(message)
                },
                me
            ),
            "adding the object"
        )
        try Self.check(sd_bus_request_name(bus, service, 0), "taking the name")
        let handed = Handed(bus: bus, service: me)
        startThread { [self] in
            run(handed.bus)
            Unmanaged<BusProperty>.fromOpaque(handed.service).release()
        }
    }

    package func set(_ value: Value) {
        state.withLock { state in
            state.value = value
            state.isChanged = true
        }
    }

    /// The service leaves the bus.
    package func end() throws {
        state.withLock { $0.isEnding = true }
        try eventually("\(service) has left the bus") { state.withLock { $0.hasEnded } }
    }

    /// Unchecked: it is handed to one thread, and used by nobody else.
    private struct Handed: @unchecked Sendable {
        let bus: OpaquePointer
        let service: UnsafeMutableRawPointer
    }

    private func run(_ bus: OpaquePointer) {
        while true {
            while sd_bus_process(bus, nil) > 0 {}
            let (isChanged, isEnding) = state.withLock { state in
                defer { state.isChanged = false }
                return (state.isChanged, state.isEnding)
            }
            if isChanged { tell(bus) }
            if isEnding { break }
            _ = sd_bus_wait(bus, Self.tick)
        }
        _ = sd_bus_flush_close_unref(bus)
        state.withLock { $0.hasEnded = true }
    }

    /// As services do that do not say what the value is by now.
    private func tell(_ bus: OpaquePointer) {
        var message: OpaquePointer?
        guard sd_bus_message_new_signal(bus, &message, path, Self.interface, "PropertiesChanged") >= 0 else { return }
        defer { _ = sd_bus_message_unref(message) }
        _ = service.withCString { sd_bus_message_append_basic(message, Self.type("s"), $0) }
        for contents in ["{sv}", "s"] {
            _ = sd_bus_message_open_container(message, Self.type("a"), contents)
            if contents == "s" { _ = property.withCString { sd_bus_message_append_basic(message, Self.type("s"), $0) } }
            _ = sd_bus_message_close_container(message)
        }
        _ = sd_bus_send(bus, message, nil)
    }

    private func answer(_ message: OpaquePointer) -> Int32 {
        guard sd_bus_message_is_method_call(message, Self.interface, "Get") > 0 else { return 0 }
        let value = state.withLock { $0.value }
        var answer: OpaquePointer?
        guard sd_bus_message_new_method_return(message, &answer) >= 0 else { return -EIO }
        defer { _ = sd_bus_message_unref(answer) }
        var raw = value.raw
        _ = sd_bus_message_open_container(answer, Self.type("v"), value.type)
        _ = sd_bus_message_append_basic(answer, Self.type(value.type), &raw)
        _ = sd_bus_message_close_container(answer)
        _ = sd_bus_send(nil, answer, nil)
        return 1
    }

    private static let interface = "org.freedesktop.DBus.Properties"
    private static func type(_ text: String) -> CChar { CChar(bitPattern: text.utf8.first ?? 0) }

    private static func check(_ status: Int32, _ what: String) throws {
        guard status >= 0 else { throw TestFailure("\(what): \(String(cString: strerror(-status)))") }
    }
}
