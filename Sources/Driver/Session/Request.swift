import CFuse3
import Glibc
import SystemPackage

/// A request of the kernel that must be answered exactly once.
///
/// Unchecked: libfuse allows the answer from any thread, and whoever holds the only right to answer is the only one to use `raw`.
struct Request: @unchecked Sendable {
    let raw: fuse_req_t
    /// The caller's thread id, 0 where the kernel names none (RELEASE, write-back).
    let thread: Int32
    let user: UInt32
    let group: UInt32
    /// The caller's umask.
    let mask: mode_t

    init(_ raw: fuse_req_t) {
        self.raw = raw
        // libfuse fills this in before it calls a handler; it is a part of the request.
        let context = fuse_req_ctx(raw)
        thread = context?.pointee.pid ?? 0
        user = context?.pointee.uid ?? 0
        group = context?.pointee.gid ?? 0
        mask = context?.pointee.umask ?? 0
    }

    func fail(_ error: Errno) { fuse_reply_err(raw, error.rawValue) }
    func succeed() { fuse_reply_err(raw, 0) }

    /// Answers with success when `body` returns, or with what it throws.
    func answer(_ body: () throws(Errno) -> Void) {
        do throws(Errno) {
            try body()
            succeed()
        } catch {
            fail(error)
        }
    }

    /// `body` answers; what it throws is answered here.
    func attempt(_ body: () throws(Errno) -> Void) {
        do throws(Errno) { try body() } catch { fail(error) }
    }

    func reply(attributes: stat, timeout: Double) {
        var attributes = attributes
        fuse_reply_attr(raw, &attributes, timeout)
    }

    func reply(bytes: UnsafeRawBufferPointer) {
        fuse_reply_buf(raw, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    }

    /// Answers with a part of a file. It goes from the page cache to the program's memory: copied once, and never here.
    func reply(file descriptor: Int32, _ range: Range<Int64>) {
        // Field by field: newer versions of libfuse have more of them.
        var part = fuse_buf()
        part.size = range.count
        part.flags = fuse_buf_flags(FUSE_BUF_IS_FD.rawValue | FUSE_BUF_FD_SEEK.rawValue | FUSE_BUF_FD_RETRY.rawValue)
        part.fd = descriptor
        part.pos = off_t(range.lowerBound)
        var parts = fuse_bufvec(count: 1, idx: 0, off: 0, buf: part)
        fuse_reply_data(raw, &parts, fuse_buf_copy_flags(0))
    }

    /// As getxattr(2): the size when no room was offered, ERANGE when it does not fit.
    func reply(attribute value: [UInt8], room: Int) {
        if room == 0 {
            fuse_reply_xattr(raw, value.count)
        } else if value.count > room {
            fail(.outOfRange)
        } else {
            value.withUnsafeBytes { reply(bytes: $0) }
        }
    }
}
