internal import NIOCore

/// Which of this machine's addresses another machine can probably reach.
enum HostAddress {
    /// The best guess; `nil` on a machine without a network.
    static func guess() -> String? {
        // What cannot be enumerated is as good as not there: the person can name the address.
        let devices = (try? System.enumerateDevices()) ?? []
        let candidates = devices.compactMap { device -> (name: String, host: String)? in
            guard let address = device.address, case .v4 = address, let host = address.ipAddress else { return nil }
            guard !ListenAddress.isLoopback(host), !host.hasPrefix("169.254.") else { return nil }
            return (device.name, host)
        }
        return (candidates.first { !isVirtual($0.name) } ?? candidates.first)?.host
    }

    /// Networks that only this machine is on.
    private static func isVirtual(_ name: String) -> Bool {
        ["docker", "br-", "veth", "virbr", "vmnet", "lxc", "podman", "cni"].contains { name.hasPrefix($0) }
    }
}
