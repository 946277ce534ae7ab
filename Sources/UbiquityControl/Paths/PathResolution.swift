internal import Glibc

/// A path that a person typed, as the service needs it. The service itself never walks paths: it would wait for its own mount.
package struct ItemArgument: Codable, Sendable, Hashable {
    /// As it was typed, for messages.
    package var typed: ControlPath
    /// Absolute, without links on the way; the last component is not followed.
    package var path: ControlPath
    /// Where it leads if it is a symbolic link: counts when `path` itself is in no mount.
    package var target: ControlPath?

    package init(typed: ControlPath, path: ControlPath, target: ControlPath? = nil) {
        self.typed = typed
        self.path = path
        self.target = target
    }
}

extension ItemArgument {
    /// Resolves against the working folder. What does not exist (any more) is kept by name below what does.
    package init(resolving typed: [UInt8]) throws(ControlError) {
        let shown = ControlPath(bytes: typed)
        guard !typed.isEmpty, !typed.contains(0) else { throw ControlError(.usage, "path", "it is empty") }
        let slash = UInt8(ascii: "/")
        let parts = typed.split(separator: slash)
        let last = parts.last.map(Array.init) ?? []
        let followsLast = last.isEmpty || last == Array(".".utf8) || last == Array("..".utf8)
        if followsLast {
            self.init(typed: shown, path: try Self.real(typed, shown))
            return
        }
        var folder = typed
        while folder.last == slash { folder.removeLast() }
        folder.removeLast(last.count)
        let path = ControlPath(
            bytes: Self.joined(try Self.real(folder.isEmpty ? Array(".".utf8) : folder, shown).bytes, last)
        )
        self.init(
            typed: shown,
            path: path,
            target: Self.realpath(path.bytes).flatMap { $0 == path.bytes ? nil : ControlPath(bytes: $0) }
        )
    }

    /// The real path of a folder; its missing end by name.
    private static func real(_ bytes: [UInt8], _ typed: ControlPath) throws(ControlError) -> ControlPath {
        if let path = realpath(bytes) { return ControlPath(bytes: path) }
        let code = errno
        guard code == ENOENT else { throw ControlError("\(typed)", systemMessage(code)) }
        var folder = bytes
        while folder.count > 1, folder.last == UInt8(ascii: "/") { folder.removeLast() }
        guard let slash = folder.lastIndex(of: UInt8(ascii: "/")) else {
            return ControlPath(bytes: joined(try real(Array(".".utf8), typed).bytes, folder))
        }
        let last = Array(folder[(slash + 1)...])
        guard last != Array("..".utf8), last != Array(".".utf8), !last.isEmpty else {
            throw ControlError("\(typed)", systemMessage(ENOENT))
        }
        return ControlPath(
            bytes: joined(try real(slash == 0 ? [UInt8(ascii: "/")] : Array(folder[..<slash]), typed).bytes, last)
        )
    }

    private static func joined(_ folder: [UInt8], _ name: [UInt8]) -> [UInt8] {
        folder == [UInt8(ascii: "/")] ? folder + name : folder + [UInt8(ascii: "/")] + name
    }

    private static func realpath(_ bytes: [UInt8]) -> [UInt8]? {
        let terminated = bytes.map { CChar(bitPattern: $0) } + [0]
        guard let result = Glibc.realpath(terminated, nil) else { return nil }
        defer { free(result) }
        return Array(UnsafeRawBufferPointer(start: result, count: strlen(result)))
    }
}
