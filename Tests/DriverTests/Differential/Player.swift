import CLinux
import Foundation
import Glibc
import TestSupport

/// A program that does what a history says, in one folder, and tells what each step gave.
final class Player {
    static let mappedBytes = 64 * 1024

    private struct Mapping {
        let base: UnsafeMutableRawPointer
        /// A descriptor of its own, for the size: what lies behind the end of the file must not be touched.
        let file: Int32
        let isWritable: Bool
    }

    private let root: Int32
    private var entered: Int32?
    private var slots = [Int32?](repeating: nil, count: StepGenerator.slots)
    /// The umask of what it does. The thread has it for no longer: threads that it makes unknowingly, of a pool, share the thread's.
    var mask: mode_t = 0o022
    private var mappings = [Mapping?](repeating: nil, count: StepGenerator.mappings)

    init(folder: String) throws { root = try Files.open(folder, O_RDONLY | O_DIRECTORY) }

    /// Closes everything.
    func end() {
        for index in mappings.indices { unmap(index) }
        for index in slots.indices { empty(index) }
        leave()
        Glibc.close(root)
    }

    /// Through the descriptor: so a path leads to the same folder wherever that was moved, and nowhere once it is removed.
    func path(_ path: String) -> String { "/proc/self/fd/\(entered ?? root)/\(path)" }

    /// - Returns: nil for a step that concerns the mount alone.
    func perform(_ step: Step) -> Outcome? {
        let usual = umask(mask)
        defer { umask(usual) }
        switch step {
        case .open, .close, .lock, .describe, .setModeOf, .setTimesOf, .nameOpen, .synchronize: return handle(step)
        case .read, .write, .readAt, .writeAt, .seek, .setSize, .allocate, .copy: return transfer(step)
        case .map, .peek, .poke, .unmap: return mapped(step)
        case .setMask, .enter, .leave, .makeFolder, .removeFolder, .unlink, .rename, .hardLink, .makeLink, .readLink,
            .makeNode,
            .list:
            return name(step)
        case .look, .access, .truncate, .setMode, .setOwner, .setTimes, .setAttribute, .setAccessList, .attribute,
            .attributes,
            .removeAttribute:
            return attribute(step)
        case .evict, .receive, .forget: return nil
        }
    }

    // MARK: Descriptors

    private func empty(_ index: Int) {
        if let file = slots[index] { Glibc.close(file) }
        slots[index] = nil
    }

    /// -1, which every call refuses, for an empty slot.
    private func slot(_ index: Int) -> Int32 { slots[index] ?? -1 }

    private func handle(_ step: Step) -> Outcome? {
        switch step {
        case .open(let index, let name, let flags, let mode):
            empty(index)
            let file = Glibc.open(path(name), flags.raw | O_CLOEXEC, mode)
            if file < 0 { return Outcome(file) }
            slots[index] = file
            return Outcome("open")
        case .close(let index):
            defer { slots[index] = nil }
            return Outcome(Glibc.close(slot(index)))
        case .lock(let index): return Outcome(negated: clinux_try_lock(slot(index)))
        case .describe(let index):
            var status = stat()
            return fstat(slot(index), &status) < 0 ? Outcome(-1) : Outcome(Look.status(status))
        case .setModeOf(let index, let mode): return Outcome(fchmod(slot(index), mode))
        case .setTimesOf(let index, let moment):
            var times = [moment.time, moment.time]
            return Outcome(futimens(slot(index), &times))
        case .nameOpen(let index, let name):
            return Outcome(linkat(AT_FDCWD, "/proc/self/fd/\(slot(index))", AT_FDCWD, path(name), AT_SYMLINK_FOLLOW))
        case .synchronize(let index, let dataOnly):
            return Outcome(dataOnly ? fdatasync(slot(index)) : fsync(slot(index)))
        default: return nil
        }
    }

    private func transfer(_ step: Step) -> Outcome? {
        switch step {
        case .read(let index, let count): return reading(count) { Glibc.read(slot(index), $0, count) }
        case .readAt(let index, let offset, let count):
            return reading(count) { pread(slot(index), $0, count, off_t(offset)) }
        case .write(let index, let content): return Outcome(Glibc.write(slot(index), content.bytes, content.count))
        case .writeAt(let index, let offset, let content):
            return Outcome(pwrite(slot(index), content.bytes, content.count, off_t(offset)))
        case .seek(let index, let offset, let whence):
            // Positions in a folder are the file system's affair.
            if isFolder(slot(index)) { return Outcome("a folder") }
            return Outcome(lseek(slot(index), off_t(offset), whence.rawValue))
        case .setSize(let index, let size): return Outcome(ftruncate(slot(index), off_t(size)))
        case .allocate(let index, let kind, let offset, let count):
            return Outcome(negated: clinux_fallocate(slot(index), kind.rawValue, Int64(offset), Int64(count)))
        case .copy(let from, let offset, let to, let target, let count):
            return copy(slot(from), offset, slot(to), target, count)
        default: return nil
        }
    }

    private func isFolder(_ file: Int32) -> Bool {
        var status = stat()
        return fstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    private func reading(_ count: Int, _ read: (UnsafeMutableRawPointer?) -> Int) -> Outcome {
        var buffer = Data(count: count)
        let result = buffer.withUnsafeMutableBytes { read($0.baseAddress) }
        let outcome = Outcome(result)
        return result < 0 ? outcome : Outcome(outcome.text, buffer.prefix(result))
    }

    /// As programs use it: until nothing is left. How much one call takes is the file system's affair.
    private func copy(_ from: Int32, _ offset: Int, _ to: Int32, _ target: Int, _ count: Int) -> Outcome {
        var done = 0
        while done < count {
            let result = clinux_copy_range(from, Int64(offset + done), to, Int64(target + done), count - done)
            if result < 0 { return Outcome("\(done), then \(Outcome(negated: result))") }
            if result == 0 { break }
            done += Int(result)
        }
        return Outcome("\(done)")
    }

    // MARK: The folder that paths begin in

    func enter(_ name: String) -> Outcome {
        let folder = Glibc.open(path(name), Int32(CLINUX_O_PATH) | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return Outcome(folder) }
        leave()
        entered = folder
        return Outcome("entered")
    }

    func leave() {
        if let entered { Glibc.close(entered) }
        entered = nil
    }

    // MARK: Mappings

    private func unmap(_ index: Int) {
        guard let mapping = mappings[index] else { return }
        munmap(mapping.base, Self.mappedBytes)
        Glibc.close(mapping.file)
        mappings[index] = nil
    }

    private func mapped(_ step: Step) -> Outcome? {
        switch step {
        case .map(let index, let from, let isShared, let isWritable):
            unmap(index)
            let protection = PROT_READ | (isWritable ? PROT_WRITE : 0)
            let base = mmap(nil, Self.mappedBytes, protection, isShared ? MAP_SHARED : MAP_PRIVATE, slot(from), 0)
            guard let base, base != MAP_FAILED else { return Outcome(-1) }
            mappings[index] = Mapping(base: base, file: dup(slot(from)), isWritable: isWritable)
            return Outcome("mapped")
        case .peek(let index, let offset, let count):
            guard let mapping = mappings[index] else { return Outcome("no mapping") }
            let room = room(mapping, offset, count)
            return Outcome("read", Data(bytes: mapping.base + offset, count: room))
        case .poke(let index, let offset, let content):
            guard let mapping = mappings[index], mapping.isWritable else { return Outcome("no mapping") }
            let room = room(mapping, offset, content.count)
            let target = UnsafeMutableRawBufferPointer(start: mapping.base + offset, count: room)
            target.copyBytes(from: content.bytes.prefix(room))
            // The kernel does not tell other file systems when a store moves the modification time: it is seen late (with passthrough), or
            // moved by the writing, late. So it is moved here.
            if room > 0 {
                msync(mapping.base, Self.mappedBytes, MS_SYNC)
                futimens(mapping.file, nil)
            }
            return Outcome("\(room)")
        case .unmap(let index, let isSynchronized):
            guard let mapping = mappings[index] else { return Outcome("no mapping") }
            let result = isSynchronized ? Outcome(msync(mapping.base, Self.mappedBytes, MS_SYNC)) : Outcome("done")
            unmap(index)
            return result
        default: return nil
        }
    }

    private func room(_ mapping: Mapping, _ offset: Int, _ count: Int) -> Int {
        var status = stat()
        guard fstat(mapping.file, &status) == 0 else { return 0 }
        return max(0, min(count, Int(status.st_size) - offset, Self.mappedBytes - offset))
    }
}
