/// Format versions, in one place each: what writes and reads them refers to these.
package enum FormatVersion {
    /// Content-defined chunk sizes, chunk and content names, frame layout.
    package static let chunks: UInt32 = 1
    /// The messages between devices and the server.
    package static let cloudProtocol: UInt32 = 1
    /// The messages on the control socket.
    package static let control: UInt32 = 1
    /// The device's database.
    package static let stateDatabase: UInt32 = 11
    /// The server's catalogue.
    package static let catalog: UInt32 = 4
    /// The xattr of a placeholder.
    package static let placeholder: UInt8 = 1
    /// Configuration files of a device and of a server's data folder.
    package static let configuration: UInt32 = 1
}
