import Glibc
import Synchronization
package import UbiquityModel

/// A program that has a file open for writing.
package struct OpenWriter: Hashable, Sendable {
    package var path: ItemPath
    package var key: InodeKey
    /// Its process; the thread that opened the file, if that is gone.
    package var process: Int32
    package var program: String?
}

extension Mount {
    /// Who has what open for writing, or closed and still mapped so, at or below a path; nil for all.
    package func writers(under path: ItemPath?) -> [OpenWriter] {
        guard let filesystem else { return [] }
        let handles = filesystem.open.files.filter(\.isWritable) + filesystem.writerWatch.keptHandles
        return handles.compactMap { handle in
            guard let place = filesystem.path(of: handle.node), path.map({ place.isInside($0) }) ?? true else {
                return nil
            }
            return OpenWriter(
                path: place,
                key: handle.node.key,
                process: Self.process(of: handle.thread),
                program: Self.program(of: handle.thread)
            )
        }
    }

    /// Files that programs have open, or mapped, for writing at this moment and that still have a name, each once: what `ubiquity sync`
    /// must read after the programs' last writes.
    package func writableInodes() -> [(key: InodeKey, parent: InodeKey, name: Name)] {
        guard let filesystem else { return [] }
        // Not by what is open: of a mapping that outlives its handle only the count tells at every moment.
        let written = filesystem.table.all.filter { node in node.state.withLock { $0.writers > 0 } }
        return written.sorted { $0.id < $1.id }.compactMap { node in
            guard let link = node.link else { return nil }
            return (node.key, link.parent, link.name)
        }
    }

    /// Whether any program has it open.
    package func isOpen(_ key: InodeKey) -> Bool {
        filesystem?.table.node(key)?.state.withLock { $0.handles > 0 } ?? false
    }

    package func hasWriter(_ key: InodeKey) -> Bool { filesystem?.table.node(key)?.hasWriters ?? false }

    /// Of a folder, or of a file that the kernel knows.
    package func path(of key: InodeKey) -> ItemPath? { filesystem?.path(of: key) }

    /// The process of a thread ("Tgid:" of its status).
    private static func process(of thread: Int32) -> Int32 {
        let lines = smallFile("/proc/\(thread)/status")?.split(separator: "\n") ?? []
        guard let line = lines.first(where: { $0.hasPrefix("Tgid:") }) else { return thread }
        return line.split(whereSeparator: \.isWhitespace).last.flatMap { Int32($0) } ?? thread
    }

    private static func program(of thread: Int32) -> String? {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/\(thread)/exe", &path, path.count)
        guard count > 0 else { return nil }
        let text = String(decoding: path[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text.split(separator: "/").last.map(String.init)
    }
}
