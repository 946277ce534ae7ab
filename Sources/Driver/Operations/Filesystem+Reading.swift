import CFuse3
import CLinux
import Glibc
import Replica
import SystemPackage
import UbiquityModel

extension Filesystem {
    /// - Parameter flags: of the open file, as they are now.
    func read(_ request: Request, _ number: UInt64, _ size: Int, _ offset: Int64, _ flags: Int32) {
        switch open[number] {
        case .file(let handle): read(request, handle, size, offset, flags)
        case .version(let descriptor): serve(request, descriptor.raw, size, offset)
        case .folder, .versionFolder, nil: request.fail(.badFileDescriptor)
        }
    }

    private func read(_ request: Request, _ handle: Handle, _ size: Int, _ offset: Int64, _ flags: Int32) {
        request.attempt { () throws(Errno) in try read(request, handle, self.file(of: handle), size, offset, flags) }
    }

    private func read(
        _ request: Request,
        _ handle: Handle,
        _ descriptor: SharedDescriptor,
        _ size: Int,
        _ offset: Int64,
        _ flags: Int32
    ) {
        guard let file = handle.streaming else { return serve(request, descriptor.raw, size, offset) }
        // A placeholder's size never changes: what begins behind it is the end, whatever is there.
        let range = offset..<max(offset, min(offset + Int64(size), file.placeholder.size))
        guard !range.isEmpty else { return serve(request, descriptor.raw, size, offset) }
        guard !file.contains(range) else { return request.reply(file: descriptor.raw, range) }
        deferrals.wait(
            request,
            begin: { completion in
                host.needContent(
                    file,
                    range: range,
                    waitsForAuthor: flags & O_NONBLOCK == 0,
                    threadID: request.thread
                ) { completion($0.map { .failure($0) } ?? .success(())) }
            },
            nothing: (),
            resume: { [self] result in
                request.attempt { () throws(Errno) in
                    try result.get()
                    // Truncated since: it may have another size by now.
                    guard !file.isDiscarded else { return serve(request, descriptor.raw, size, offset) }
                    // Never bytes that nobody verified, whatever the host says.
                    guard file.contains(range) else { throw .ioError }
                    request.reply(file: descriptor.raw, range)
                }
            }
        )
    }

    private func serve(_ request: Request, _ descriptor: Int32, _ size: Int, _ offset: Int64) {
        buffers.withBuffer(size) { buffer in
            let count = clinux_pread(descriptor, buffer.baseAddress, size, offset)
            if count < 0 {
                request.fail(Errno(rawValue: Int32(-count)))
            } else {
                request.reply(bytes: UnsafeRawBufferPointer(rebasing: buffer[..<Int(count)]))
            }
        }
    }

    /// SEEK_DATA and SEEK_HOLE. A dataless file is all data: its holes are ours.
    func seek(_ request: Request, _ number: UInt64, _ offset: Int64, _ whence: Int32) {
        request.attempt { () throws(Errno) in
            guard case .file(let handle) = open[number] else { throw .invalidArgument }
            let found: Int64
            if let file = handle.streaming {
                guard offset >= 0, offset < file.placeholder.size else { throw .noSuchAddressOrDevice }
                found = whence == Int32(CLINUX_SEEK_DATA) ? offset : file.placeholder.size
            } else {
                // The position moves, which nothing uses: all reading and writing names its offset.
                let file = try self.file(of: handle)
                found = Int64(lseek(file.raw, off_t(offset), whence))
                if found < 0 { throw Errno(rawValue: errno) }
            }
            fuse_reply_lseek(request.raw, off_t(found))
        }
    }
}
