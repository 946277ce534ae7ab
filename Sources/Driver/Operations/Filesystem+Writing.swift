import CFuse3
import CLinux
import Glibc
import Replica
import Synchronization
import SystemPackage
import UbiquityModel

extension Filesystem {
    func write(_ request: Request, _ number: UInt64, _ bytes: UnsafeRawBufferPointer, _ offset: Int64) {
        guard let handle = open.file(number), handle.isWritable, let descriptor = try? file(of: handle) else {
            return request.fail(.badFileDescriptor)
        }
        let result = Int64(pwrite(descriptor.raw, bytes.baseAddress, bytes.count, off_t(offset)))
        let error = Errno(rawValue: errno)
        // Even a failed write may have changed something.
        noteWritten(handle)
        if result < 0 { request.fail(error) } else { fuse_reply_write(request.raw, Int(result)) }
    }

    /// After the bytes have changed: a mark that the engine collected before may be missing just these.
    private func noteWritten(_ handle: Handle) {
        handle.hasWritten.store(true, ordering: .relaxed)
        noteWritten(handle.node)
    }

    func flush(_ request: Request, _ number: UInt64) {
        // Nothing is held back: each write has reached the disk's filesystem. That the handle ends is known at RELEASE.
        request.succeed()
    }

    func synchronize(_ request: Request, _ number: UInt64, dataOnly: Bool) {
        request.answer { () throws(Errno) in
            switch open[number] {
            case .file(let handle):
                let file = try fileToSynchronize(handle)
                try checked(dataOnly ? clinux_fdatasync(file.raw) : clinux_fsync(file.raw))
                noteDirectWriting(handle)
            case .folder(let handle): try checked(clinux_fsync(handle.descriptor(self).raw))
            case .version, .versionFolder: return
            case nil: throw .badFileDescriptor
            }
        }
    }

    private func fileToSynchronize(_ handle: Handle) throws(Errno) -> SharedDescriptor {
        if let kept = handle.syncDescriptor { return kept }
        return try file(of: handle)
    }

    func allocate(_ request: Request, _ number: UInt64, _ mode: Int32, _ offset: Int64, _ length: Int64) {
        request.answer { () throws(Errno) in
            guard let handle = open.file(number), handle.isWritable else { throw .badFileDescriptor }
            defer { noteWritten(handle) }
            let file = try file(of: handle)
            try checked(clinux_fallocate(file.raw, mode, offset, length))
        }
    }

    /// The kernel falls back to reading and writing after EXDEV, which a dataless source needs.
    func copyRange(
        _ request: Request,
        _ from: UInt64,
        _ fromOffset: Int64,
        _ to: UInt64,
        _ toOffset: Int64,
        _ length: Int
    ) {
        request.attempt { () throws(Errno) in
            guard let source = open.file(from), let target = open.file(to) else { throw .crossDevice }
            guard source.dataless == nil, target.isWritable else { throw .crossDevice }
            let input = try file(of: source)
            let output = try file(of: target)
            let result = clinux_copy_range(input.raw, fromOffset, output.raw, toOffset, length)
            // Before the answer: who has it may ask for the change at once. Even what failed may have changed something.
            noteWritten(target)
            fuse_reply_write(request.raw, try checked(result))
        }
    }
}
