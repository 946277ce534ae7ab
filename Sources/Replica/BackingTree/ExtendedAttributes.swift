internal import CLinux
internal import Glibc
package import SystemPackage
internal import UbiquityModel

/// Extended attributes of the inode behind any descriptor, also an `O_PATH` one. Names are whole (`user.…`).
package enum ExtendedAttributes {
    /// Ours, stored: invisible to programs (two dots).
    package static let placeholder = "user.ubiquity..placeholder"
    package static let mode = "user.ubiquity..mode"
    /// Ours, but ordinary and synced.
    package static let package = PackageDeclaration.attribute
    private static let reserved = Array("user.ubiquity.".utf8)
    private static let user = Array("user.".utf8)

    /// Whether the attribute belongs to the item: it is sent, and programs see it.
    package static func isSynced(_ name: [UInt8]) -> Bool {
        name.starts(with: user) && name.count > user.count && !name.contains(0)
            && (!name.starts(with: reserved) || name == Array(package.utf8))
    }

    /// `nil` if there is none, or the filesystem or the kind of inode has none at all.
    package static func get(_ descriptor: Int32, _ name: UnsafePointer<CChar>) throws(Errno) -> [UInt8]? {
        var capacity = 256
        while true {
            var result: Int64 = 0
            let value = [UInt8](unsafeUninitializedCapacity: capacity) { room, count in
                result = clinux_xattr_get(descriptor, name, room.baseAddress, room.count)
                count = max(0, Int(result))
            }
            if result >= 0 { return value }
            switch Errno(rawValue: Int32(-result)) {
            case .noAttribute, .notSupported, .notPermitted: return nil
            // XATTR_SIZE_MAX: no value is longer.
            case .outOfRange where capacity < 65536: capacity = 65536
            case let error: throw error
            }
        }
    }

    package static func set(_ descriptor: Int32, _ name: UnsafePointer<CChar>, _ value: [UInt8]) throws(Errno) {
        try checked(value.withUnsafeBytes { clinux_xattr_set(descriptor, name, $0.baseAddress, $0.count, 0) })
    }

    /// Does nothing if there is none.
    package static func remove(_ descriptor: Int32, _ name: UnsafePointer<CChar>) throws(Errno) {
        let result = clinux_xattr_remove(descriptor, name)
        if result < 0, -result != ENODATA { throw Errno(rawValue: -result) }
    }

    /// All names, ours included. Empty where there can be none.
    package static func names(_ descriptor: Int32) throws(Errno) -> [[UInt8]] {
        try names { clinux_xattr_list(descriptor, $0, $1) }
    }

    /// The same of what a name in a directory stands for, never following a link.
    package static func names(in directory: Int32, _ name: UnsafePointer<CChar>) throws(Errno) -> [[UInt8]] {
        try names { clinux_xattr_list_at(directory, name, $0, $1) }
    }

    private static func names(
        _ read: (UnsafeMutablePointer<CChar>?, Int) -> Int64
    ) throws(Errno) -> [[UInt8]] {
        var capacity = 512
        while true {
            var result: Int64 = 0
            let list = withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 1) { room -> [[UInt8]] in
                result = read(room.baseAddress?.assumingMemoryBound(to: CChar.self), room.count)
                guard result > 0 else { return [] }
                return room[..<Int(result)].split(separator: 0).map { Array($0) }
            }
            if result >= 0 { return list }
            switch Errno(rawValue: Int32(-result)) {
            case .notSupported, .notPermitted: return []
            // XATTR_LIST_MAX: no list is longer.
            case .outOfRange where capacity < 65536: capacity = 65536
            case let error: throw error
            }
        }
    }

    /// What is synced of an inode's attributes.
    package static func synced(_ descriptor: Int32) throws(Errno) -> [[UInt8]: [UInt8]] {
        var result = [[UInt8]: [UInt8]]()
        for name in try names(descriptor) where isSynced(name) {
            if let value = try get(descriptor, terminated(name)) { result[name] = value }
        }
        return result
    }

    /// Sets what differs and removes what is not named. Returns those that the disk has no room for (ext4 holds about 4
    /// KiB an inode).
    package static func replaceSynced(_ descriptor: Int32, with wanted: [[UInt8]: [UInt8]]) throws(Errno) -> [[UInt8]] {
        let present = try synced(descriptor)
        for name in present.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) where wanted[name] == nil {
            try remove(descriptor, terminated(name))
        }
        var refused = [[UInt8]]()
        for (name, value) in wanted.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) })
        where present[name] != value {
            // Whatever another device sends, our own attributes are never set this way.
            guard isSynced(name) else {
                refused.append(name)
                continue
            }
            do throws(Errno) {
                try set(descriptor, terminated(name), value)
            } catch .noSpace, .argListTooLong, .outOfRange, .notSupported, .notPermitted {
                refused.append(name)
            }
        }
        return refused
    }

    /// A name as a C string.
    private static func terminated(_ name: [UInt8]) -> [CChar] { name.map { CChar(bitPattern: $0) } + [0] }
}
