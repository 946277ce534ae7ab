import CSystemd
import Glibc

/// A bus of a test's own, that takes the place of the system's, and the services on it that say something of the machine.
package final class SystemBus: Sendable {
    package let address: String

    package init(_ site: Site) throws {
        let socket = site.folder + "/bus"
        let configuration = site.folder + "/bus.conf"
        address = "unix:path=\(socket)"
        // Nothing but signals travels here; who may connect may do all.
        try Files.write(
            """
            <busconfig><type>system</type><listen>\(address)</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/>
            <allow send_type="signal"/><allow receive_type="signal"/><allow receive_sender="*"/></policy></busconfig>
            """,
            to: configuration
        )
        let daemon = try site.start(["dbus-daemon", "--nofork", "--config-file=" + configuration])
        try eventually("the bus is there") {
            guard daemon.isRunning else { throw TestFailure("\(try daemon.wait())") }
            return Files.exists(socket)
        }
        guard chmod(socket, 0o777) == 0 else { throw SystemError("opening", socket, errno) }
    }

    /// What a device must be told to use it.
    package var variables: [String: String] { ["DBUS_SYSTEM_BUS_ADDRESS": address] }

    /// Says as logind that the machine is about to sleep, or awake again.
    /// - Parameter name: whose name it speaks under.
    package func prepareForSleep(_ isBefore: Bool, as name: String = "org.freedesktop.login1") throws {
        var bus: OpaquePointer?
        try check(sd_bus_new(&bus), "making a connection")
        defer { _ = sd_bus_flush_close_unref(bus) }
        try check(sd_bus_set_address(bus, address), "setting the address")
        try check(sd_bus_set_bus_client(bus, 1), "greeting")
        try check(sd_bus_start(bus), "connecting")
        try check(sd_bus_request_name(bus, name, 0), "taking the name")
        var message: OpaquePointer?
        let manager = ("/org/freedesktop/login1", "org.freedesktop.login1.Manager")
        try check(sd_bus_message_new_signal(bus, &message, manager.0, manager.1, "PrepareForSleep"), "making a signal")
        defer { _ = sd_bus_message_unref(message) }
        var value: Int32 = isBefore ? 1 : 0
        let boolean = CChar(bitPattern: UInt8(ascii: "b"))
        try check(sd_bus_message_append_basic(message, boolean, &value), "filling it")
        try check(sd_bus_send(bus, message, nil), "sending it")
    }

    /// A service with one property, as long as it lives.
    package func serve(
        _ service: String,
        at path: String,
        _ property: String,
        _ value: BusProperty.Value
    ) throws -> BusProperty {
        try BusProperty(address, service, path, property, value)
    }

    private func check(_ status: Int32, _ what: String) throws {
        guard status >= 0 else { throw SystemError(what, address, -status) }
    }
}
