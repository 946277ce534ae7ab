internal import Glibc
package import UbiquityControl

/// What this device calls itself: the host's name, and with a `UBIQUITY_HOME` of its own that folder's, so that several devices on
/// one machine differ.
package enum DeviceName {
    package static func make(_ home: HomeDirectories) -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        // A name that fills the buffer is cut; the last byte stays NUL.
        gethostname(&buffer, buffer.count - 1)
        let host = String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        let name = host.isEmpty ? "device" : host
        return home.label.map { "\(name)-\($0)" } ?? name
    }
}
