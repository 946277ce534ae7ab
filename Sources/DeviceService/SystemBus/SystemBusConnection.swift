internal import CSystemd

/// What a system service says of the machine.
struct MachineProperty: Sendable {
    var service: String
    var path: String
    var name: String
    /// `u`, a number, or `b`, 0 or 1.
    var type: UInt8

    /// NetworkManager's NMMetered: 1 and 3 for a link that costs, or seems to.
    static let metered = MachineProperty(
        service: "org.freedesktop.NetworkManager",
        path: "/org/freedesktop/NetworkManager",
        name: "Metered",
        type: UInt8(ascii: "u")
    )
    static let onBattery = MachineProperty(
        service: "org.freedesktop.UPower",
        path: "/org/freedesktop/UPower",
        name: "OnBattery",
        type: UInt8(ascii: "b")
    )
    static let all = [metered, onBattery]

    /// Of the signals after which it may be another: its own, and that its service has come or gone.
    var changeRules: [String] {
        [
            "type='signal',sender='\(service)',path='\(path)',interface='\(Self.interface)',member='PropertiesChanged'",
            "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                + "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='\(service)'",
        ]
    }

    static let interface = "org.freedesktop.DBus.Properties"
}

/// A connection to the system bus that somebody else opens and closes.
struct SystemBusConnection {
    private let bus: OpaquePointer

    init(_ bus: OpaquePointer) { self.bus = bus }

    /// False once the bus has gone away.
    var isOpen: Bool { sd_bus_is_open(bus) > 0 }

    func match(_ rule: String, _ user: UnsafeMutableRawPointer, _ told: sd_bus_message_handler_t) -> Int32 {
        sd_bus_add_match(bus, nil, rule, told, user)
    }

    /// Waits for the answer. `nil`: nobody says anything of it; no service is started for it.
    func value(of property: MachineProperty) -> UInt32? {
        var question: OpaquePointer?
        guard
            sd_bus_message_new_method_call(
                bus,
                &question,
                property.service,
                property.path,
                MachineProperty.interface,
                "Get"
            ) >= 0
        else { return nil }
        defer { _ = sd_bus_message_unref(question) }
        let text = CChar(bitPattern: UInt8(ascii: "s"))
        guard sd_bus_message_set_auto_start(question, 0) >= 0,
            // Properties belong to the interface that is named like the service.
            property.service.withCString({ sd_bus_message_append_basic(question, text, $0) }) >= 0,
            property.name.withCString({ sd_bus_message_append_basic(question, text, $0) }) >= 0
        else { return nil }
        var answer: OpaquePointer?
        guard sd_bus_call(bus, question, 0, nil, &answer) >= 0 else { return nil }
        defer { _ = sd_bus_message_unref(answer) }
        let type = String(decoding: [property.type], as: UTF8.self)
        var value: UInt32 = 0
        guard sd_bus_message_enter_container(answer, CChar(bitPattern: UInt8(ascii: "v")), type) > 0,
            sd_bus_message_read_basic(answer, CChar(bitPattern: property.type), &value) > 0
        else { return nil }
        return value
    }
}
