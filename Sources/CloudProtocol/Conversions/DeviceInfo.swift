internal import FoundationEssentials
package import UbiquityModel

/// A device of an account, as `ubiquity devices` lists it.
package struct DeviceInfo: Hashable, Sendable {
    package var id: DeviceID
    package var name: String
    package var joined: Timestamp
    package var lastSeen: Timestamp
    package var isRevoked: Bool
    /// The device that asked.
    package var isCurrent: Bool

    package init(id: DeviceID, name: String, joined: Timestamp, lastSeen: Timestamp, isRevoked: Bool, isCurrent: Bool) {
        self.id = id
        self.name = name
        self.joined = joined
        self.lastSeen = lastSeen
        self.isRevoked = isRevoked
        self.isCurrent = isCurrent
    }

    package init(wire: WireDevice) throws(WireError) {
        self.init(
            id: try DeviceID(wire: wire.id, "a device's id"),
            name: wire.name,
            joined: Timestamp(wire: wire.joined),
            lastSeen: Timestamp(wire: wire.lastSeen),
            isRevoked: wire.revoked,
            isCurrent: wire.current
        )
    }
}

extension WireDevice {
    package init(_ device: DeviceInfo) {
        self.init()
        id = device.id.wire
        name = device.name
        joined = device.joined.wire
        lastSeen = device.lastSeen.wire
        revoked = device.isRevoked
        current = device.isCurrent
    }
}
