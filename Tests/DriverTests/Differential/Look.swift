import CLinux
import Foundation
import Glibc
import TestSupport

/// What can be seen of an item, and of a whole tree, in words that are equal where nothing differs.
enum Look {
    /// Times of now differ between two runs: only those that were set are compared, which all lie days away.
    static func time(_ time: timespec) -> String {
        abs(time.tv_sec - Glibc.time(nil)) < 86400 ? "now" : "\(time.tv_sec).\(time.tv_nsec)"
    }

    static func status(_ status: stat) -> String {
        let isFolder = status.st_mode & S_IFMT == S_IFDIR
        // A folder's size is the disk's own affair.
        let size = isFolder ? "" : " \(status.st_size) bytes,"
        let mode = String(status.st_mode, radix: 8)
        // Writing to a fifo moves its time on a disk, but the kernel tells no other file system of it.
        let time = status.st_mode & S_IFMT == S_IFIFO ? "" : ", " + time(status.st_mtim)
        return "mode \(mode),\(size) \(status.st_nlink) names, of \(status.st_uid):\(status.st_gid)\(time)"
    }

    /// An `O_PATH` descriptor is enough.
    static func attributeNames(_ descriptor: Int32) -> Outcome {
        var buffer = [CChar](repeating: 0, count: 1 << 16)
        let count = clinux_xattr_list(descriptor, &buffer, buffer.count)
        guard count >= 0 else { return Outcome(negated: count) }
        let names = buffer[..<Int(count)].split(separator: 0).map { name in
            String(decoding: name.map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
        return Outcome(names.sorted().joined(separator: " "))
    }

    static func list(_ path: String) -> Outcome {
        guard let folder = opendir(path) else { return Outcome(-1) }
        defer { closedir(folder) }
        var entries: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(folder) else { break }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            entries.append("\(name):\(entry.pointee.d_type)")
        }
        return errno == 0 ? Outcome(entries.sorted().joined(separator: " ")) : Outcome(-1)
    }

    /// A line for everything below a folder, which must be readable by us.
    static func tree(_ root: String) throws -> [String: Outcome] {
        var lines: [String: Outcome] = [:]
        var inodes: [ino_t: Int] = [:]
        try visit(root, "", &lines, &inodes)
        return lines
    }

    private static func visit(
        _ root: String,
        _ path: String,
        _ lines: inout [String: Outcome],
        _ inodes: inout [ino_t: Int]
    ) throws {
        let whole = root + path
        let status = try Files.status(whole)
        // Which names are one inode is compared, by who comes first; the number is not.
        let inode = inodes[status.st_ino] ?? inodes.count
        inodes[status.st_ino] = inode
        var text = "inode \(inode), " + Self.status(status)
        var content = Data()
        let item = try Files.open(whole, Int32(CLINUX_O_PATH) | O_NOFOLLOW)
        defer { close(item) }
        for name in attributeNames(item).text.split(separator: " ") {
            var value = [UInt8](repeating: 0, count: 1 << 16)
            let count = clinux_xattr_get(item, String(name), &value, value.count)
            text += ", \(name)="
            if count < 0 { text += Outcome(negated: count).text } else { content += value[..<Int(count)] }
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG:
            do { content += try Files.read(whole) } catch let error as SystemError {
                text += ", " + Outcome.name(of: error.code)
            }
        case S_IFLNK:
            var target = [CChar](repeating: 0, count: 5000)
            let count = clinux_readlink_at(item, "", &target, target.count)
            content += target[..<max(0, Int(count))].map(UInt8.init(bitPattern:))
        case S_IFDIR:
            lines[path] = Outcome(text, content)
            guard let names = try? Files.names(in: whole) else { return }
            for name in names { try visit(root, path + "/" + name, &lines, &inodes) }
            return
        default: break
        }
        lines[path] = Outcome(text, content)
    }
}
