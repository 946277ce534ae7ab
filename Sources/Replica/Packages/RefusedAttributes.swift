internal import SystemPackage
internal import UbiquityModel

/// Extended attributes of what lies in a package for which this disk has no room (ext4 has about 4 KiB for an inode). They are not here,
/// and are the package's all the same: with the next revision that this device makes, all others would lose them.
///
/// 1. `PackageBuilder` notes them in an attribute of the package's folder that programs do not see, by hashes: there is no more room for
///    that one. The inode says whose they are, whatever is written in it and wherever in the package it goes.
/// 2. `PackageTree` counts them to the package's size, as long as that inode lies in it and has no attribute of that name.
/// 3. Whoever reads the package for sending takes their values from the index that was agreed on.
struct RefusedAttributes: Sendable {
    private static let name = "user.ubiquity..refused"
    private static let version: UInt8 = 1

    /// What is known of a value that is not here.
    struct Attribute: Hashable, Sendable {
        fileprivate var name: UInt64
        fileprivate var value: UInt64
        /// That it takes in an index.
        var bytes: UInt32

        init(_ name: [UInt8], _ value: [UInt8]) {
            self.init(name: Self.hash(name), value: Self.hash(value), bytes: UInt32(8 + name.count + value.count))
        }

        fileprivate init(name: UInt64, value: UInt64, bytes: UInt32) {
            self.name = name
            self.value = value
            self.bytes = bytes
        }

        func isNamed(_ name: [UInt8]) -> Bool { self.name == Self.hash(name) }

        private static func hash(_ bytes: [UInt8]) -> UInt64 {
            var hash = StableHash()
            hash.add(bytes)
            return hash.value
        }
    }

    private var attributes: [UInt64: [Attribute]] = [:]

    var isEmpty: Bool { attributes.isEmpty }

    init() {}

    /// - Parameter names: what `ExtendedAttributes.replaceSynced` could not set of `wanted` on that inode.
    mutating func add(_ names: [[UInt8]], of wanted: [[UInt8]: [UInt8]], on key: InodeKey) {
        for name in names {
            guard let value = wanted[name] else { continue }
            attributes[Self.hash(key), default: []].append(Attribute(name, value))
        }
    }

    func of(_ key: InodeKey) -> [Attribute] { isEmpty ? [] : attributes[Self.hash(key)] ?? [] }

    private static func hash(_ key: InodeKey) -> UInt64 {
        var hash = StableHash()
        hash.add(key.bytes)
        return hash.value
    }

    // MARK: On the folder

    /// What is noted on a package's folder; nothing where that cannot be read.
    init(folder: Int32) throws(Errno) {
        guard let bytes = try ExtendedAttributes.get(folder, Self.name) else { return }
        var reader = ByteReader(bytes)
        guard reader.integer(UInt8.self) == Self.version else { return }
        while let inode = reader.integer(UInt64.self), let name = reader.integer(UInt64.self),
            let value = reader.integer(UInt64.self), let bytes = reader.integer(UInt32.self)
        {
            attributes[inode, default: []].append(Attribute(name: name, value: value, bytes: bytes))
        }
    }

    /// On a new folder. If there is no room for that either, they are lost with the next revision of this device.
    func write(to folder: Int32) throws(Errno) {
        guard !isEmpty else { return }
        var writer = ByteWriter()
        writer.integer(Self.version)
        for (inode, attributes) in attributes.sorted(by: { $0.key < $1.key }) {
            for attribute in attributes {
                writer.integer(inode)
                writer.integer(attribute.name)
                writer.integer(attribute.value)
                writer.integer(attribute.bytes)
            }
        }
        do throws(Errno) {
            try ExtendedAttributes.set(folder, Self.name, writer.result)
        } catch .noSpace, .argListTooLong, .outOfRange {
            return
        }
    }

    /// Nobody knows their values: from here on the package is without them.
    static func forget(folder: Int32) throws(Errno) { try ExtendedAttributes.remove(folder, name) }
}
