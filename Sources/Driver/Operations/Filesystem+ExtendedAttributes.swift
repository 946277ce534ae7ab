import CFuse3
import CLinux
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

/// Extended attributes: those of the disk, but ours hidden, and the virtual ones that the host answers.
extension Filesystem {
    private static let reserved = Array("user.ubiquity.".utf8)
    private static let control = "user.ubiquity.control"
    private static let capabilities = "security.capability"

    /// Whether setting that attribute asks the engine for something.
    static func isControl(_ name: UnsafePointer<CChar>) -> Bool { strcmp(name, control) == 0 }

    fileprivate enum Attribute {
        /// The disk's; also `user.ubiquity.package`.
        case ordinary
        case virtual(ItemAttributeName)
        case control
        /// Ours, stored, or none at all.
        case hidden

        init(_ name: String) {
            guard Array(name.utf8).starts(with: reserved), name != ExtendedAttributes.package else {
                self = .ordinary
                return
            }
            if name == Filesystem.control {
                self = .control
            } else if let virtual = ItemAttributeName(rawValue: String(name.dropFirst(reserved.count))) {
                self = .virtual(virtual)
            } else {
                self = .hidden
            }
        }
    }

    func getAttribute(_ request: Request, _ id: fuse_ino_t, _ name: UnsafePointer<CChar>, _ room: Int) {
        request.attempt { () throws(Errno) in
            guard !VersionTree.owns(id) else {
                guard let value = try versionAttributes(id)[Array(String(cString: name).utf8)] else {
                    throw .noAttribute
                }
                return request.reply(attribute: value, room: room)
            }
            let node = try node(id)
            // The kernel asks before the first write through every handle.
            if strcmp(name, Self.capabilities) == 0, node.state.withLock({ $0.isWithoutCapabilities }) {
                throw .noAttribute
            }
            switch Attribute(String(cString: name)) {
            case .ordinary:
                if Attribute.needsAccess(name) { try requireAccess(request, node, R_OK) }
                try replyAttribute(request, descriptor(of: node), name, room)
            case .virtual(let attribute): askAttribute(request, node, attribute, room)
            case .control, .hidden: throw .noAttribute
            }
        }
    }

    private func replyAttribute(
        _ request: Request,
        _ descriptor: SharedDescriptor,
        _ name: UnsafePointer<CChar>,
        _ room: Int
    ) throws(Errno) {
        if room == 0 {
            fuse_reply_xattr(request.raw, try checked(clinux_xattr_get(descriptor.raw, name, nil, 0)))
            return
        }
        buffers.withBuffer(room) { buffer in
            let count = clinux_xattr_get(descriptor.raw, name, buffer.baseAddress, room)
            if count < 0 {
                request.fail(Errno(rawValue: Int32(-count)))
            } else {
                request.reply(bytes: UnsafeRawBufferPointer(rebasing: buffer[..<Int(count)]))
            }
        }
    }

    private func askAttribute(_ request: Request, _ node: Node, _ attribute: ItemAttributeName, _ room: Int) {
        guard let link = node.link, node.id != NodeTable.rootID else { return request.fail(.noAttribute) }
        deferrals.wait(
            request,
            begin: { completion in
                host.itemAttribute(
                    attribute,
                    key: node.key,
                    parent: link.parent,
                    itemName: link.name,
                    completion: completion
                )
                return ContentRequest(cancel: {})
            },
            nothing: [],
            resume: { result in
                request.attempt { () throws(Errno) in request.reply(attribute: try result.get(), room: room) }
            }
        )
    }

    func listAttributes(_ request: Request, _ id: fuse_ino_t, _ room: Int) {
        request.attempt { () throws(Errno) in
            guard !VersionTree.owns(id) else {
                let names = try versionAttributes(id).keys.sorted { $0.lexicographicallyPrecedes($1) }
                return request.reply(attribute: names.flatMap { $0 + [0] }, room: room)
            }
            let node = try node(id)
            let descriptor = try descriptor(of: node)
            var list = [UInt8]()
            for name in try ExtendedAttributes.names(descriptor.raw) {
                let isHidden = name.starts(with: Self.reserved) && name != Array(ExtendedAttributes.package.utf8)
                if !isHidden { list += name + [0] }
            }
            request.reply(attribute: list, room: room)
        }
    }

    func setAttribute(
        _ request: Request,
        _ id: fuse_ino_t,
        _ name: UnsafePointer<CChar>,
        _ value: UnsafeRawBufferPointer,
        _ flags: Int32
    ) {
        request.answer { () throws(Errno) in
            guard !VersionTree.owns(id) else { throw .readOnly }
            let node = try node(id)
            let attribute = Attribute(String(cString: name))
            switch attribute {
            case .ordinary:
                if strcmp(name, Self.capabilities) == 0 {
                    node.state.withLock { $0.isWithoutCapabilities = false }
                }
                try changeAttributes(request, node, name) { descriptor throws(Errno) in
                    try checked(clinux_xattr_set(descriptor, name, value.baseAddress, value.count, flags))
                }
                if Attribute.isAccessList(name), node.facts.mode != nil {
                    // It says anew what the owner may do.
                    let descriptor = try descriptor(of: node)
                    try setMode(node, descriptor, UInt16(try diskStatus(descriptor.raw).st_mode & 0o7777))
                }
            case .control:
                guard let link = node.link, node.id != NodeTable.rootID else { throw .invalidArgument }
                let verb = String(decoding: value, as: UTF8.self)
                if let error = host.control(verb, parent: link.parent, name: link.name) { throw error }
            case .virtual, .hidden: throw .notPermitted
            }
        }
    }

    func removeAttribute(_ request: Request, _ id: fuse_ino_t, _ name: UnsafePointer<CChar>) {
        request.answer { () throws(Errno) in
            guard !VersionTree.owns(id) else { throw .readOnly }
            let node = try node(id)
            guard case .ordinary = Attribute(String(cString: name)) else { throw .noAttribute }
            // The engine only wants it to be absent.
            let mayBeMissing = applier.acting(request.thread) != nil
            try changeAttributes(request, node, name) { descriptor throws(Errno) in
                let result = clinux_xattr_remove(descriptor, name)
                if result != -ENODATA || !mayBeMissing { try checked(result) }
            }
        }
    }

    private func changeAttributes(
        _ request: Request,
        _ node: Node,
        _ name: UnsafePointer<CChar>,
        _ act: (Int32) throws(Errno) -> Void
    ) throws(Errno) {
        let descriptor = try descriptor(of: node)
        if let acting = applier.acting(request.thread) {
            return try applyStep(node, acting) { () throws(Errno) in try act(descriptor.raw) }
        }
        if Attribute.needsAccess(name) { try requireAccess(request, node, W_OK) }
        try act(descriptor.raw)
        if Attribute.isAccessList(name) { notices.push(.attributes(node: node.id)) }
        report(.attributes, node)
    }
}

extension Filesystem.Attribute {
    fileprivate static func isAccessList(_ name: UnsafePointer<CChar>) -> Bool {
        strcmp(name, "system.posix_acl_access") == 0
    }

    /// As on any disk: permission to read or write the item, but for those that have rules of their own.
    fileprivate static func needsAccess(_ name: UnsafePointer<CChar>) -> Bool {
        let others: [StaticString] = ["security.", "system.", "trusted."]
        return !others.contains { prefix in
            memcmp(name, prefix.utf8Start, min(prefix.utf8CodeUnitCount, strlen(name) + 1)) == 0
        }
    }
}
