internal import Glibc

/// How many descriptors this process may have open.
package enum DescriptorLimit {
    /// As many as it is allowed. The driver's are a bounded cache: the more it may have, the less it reopens; a server has one for each
    /// connection.
    package static func raise() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
