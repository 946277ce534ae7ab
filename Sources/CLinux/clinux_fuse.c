#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

_Static_assert(CLINUX_AT_EMPTY_PATH == AT_EMPTY_PATH, "AT_EMPTY_PATH");
_Static_assert((int)CLINUX_MNT_DETACH == (int)MNT_DETACH, "MNT_DETACH");
_Static_assert((int)CLINUX_UMOUNT_NOFOLLOW == (int)UMOUNT_NOFOLLOW, "UMOUNT_NOFOLLOW");
_Static_assert(CLINUX_UTIME_NOW == UTIME_NOW && CLINUX_UTIME_OMIT == UTIME_OMIT, "UTIME_NOW, UTIME_OMIT");
_Static_assert(CLINUX_O_DIRECT == O_DIRECT, "O_DIRECT");

// Linux 6.1's header, Debian 12's, lacks some of these.
enum {
    INIT_PARALLEL_DIROPS = 1 << 18,
    INIT_HANDLE_KILLPRIV_V2 = 1 << 28,
    INIT_HAS_EXTENSION = 1 << 30,
    INIT2_DIRECT_IO_ALLOW_MMAP = 1 << 4,
    INIT2_PASSTHROUGH = CLINUX_INIT2_PASSTHROUGH,
    // In fuse_init_out since 6.9, where 6.1 has words that are not used.
    MAX_STACK_DEPTH_OFFSET = 36,
};
_Static_assert(offsetof(struct fuse_init_out, flags) == 12 && offsetof(struct fuse_init_out, flags2) == 32, "fuse_init_out");
_Static_assert(sizeof(struct fuse_init_out) == 64, "fuse_init_out");

int clinux_fuse_is_init(const void *message, size_t size, struct clinux_fuse_offer *offer) {
    const struct fuse_in_header *header = message;
    // The extension came with the 16 words of protocol 7.36; an older kernel sends the first four.
    const size_t least = sizeof *header + 16;
    if (size < least || header->opcode != FUSE_INIT) return 0;
    uint32_t words[5] = {0};
    size_t body = size - sizeof *header;
    memcpy(words, (const char *)message + sizeof *header, body < sizeof words ? body : sizeof words);
    offer->flags = words[3];
    offer->flags2 = words[3] & INIT_HAS_EXTENSION ? words[4] : 0;
    return 1;
}

int clinux_fuse_forget_entries(int descriptor) {
    // FUSE_NOTIFY_INC_EPOCH, which no header of Debian 12 has. A message without a request is told by its number 0.
    const struct fuse_out_header header = {.len = sizeof header, .error = 8, .unique = 0};
    return write(descriptor, &header, sizeof header) < 0 ? -errno : 0;
}

int clinux_fuse_extend_init(void *body, size_t size, struct clinux_fuse_offer offer, uint32_t stack_depth) {
    if (size < sizeof(struct fuse_init_out)) return -EINVAL;
    struct fuse_init_out *out = body;
    uint32_t flags = INIT_PARALLEL_DIROPS | INIT_HANDLE_KILLPRIV_V2 | INIT_HAS_EXTENSION;
    out->flags |= flags & offer.flags;
    uint32_t flags2 = INIT2_DIRECT_IO_ALLOW_MMAP & offer.flags2;
    if (stack_depth > 0 && offer.flags2 & INIT2_PASSTHROUGH) {
        flags2 |= INIT2_PASSTHROUGH;
        memcpy((char *)body + MAX_STACK_DEPTH_OFFSET, &stack_depth, sizeof stack_depth);
    }
    if (out->flags & INIT_HAS_EXTENSION) out->flags2 |= flags2;
    return (int)flags2;
}

int clinux_fuse_takes_long(const void *message, size_t size) {
    enum { MANY_BYTES = 64 << 10 };
    const struct fuse_in_header *header = message;
    if (size < sizeof *header) return 0;
    switch (header->opcode) {
    case FUSE_READ: {
        const struct fuse_read_in *read = (const void *)(header + 1);
        return size >= sizeof *header + sizeof *read && read->size >= MANY_BYTES;
    }
    case FUSE_WRITE: return size >= MANY_BYTES;
    case FUSE_FSYNC:
    case FUSE_FSYNCDIR:
    case FUSE_FALLOCATE:
    case FUSE_COPY_FILE_RANGE: return 1;
    default: return 0;
    }
}

ssize_t clinux_fuse_splice(int from, off_t *from_offset, int to, off_t *to_offset, size_t length, unsigned flags) {
    ssize_t result = splice(from, from_offset, to, to_offset, length, flags);
    // The kernel has taken it out of the pipe. libfuse would print this, where for other answers it says nothing.
    return result < 0 && errno == ENOENT ? (ssize_t)length : result;
}

int clinux_fuse_is_readable(int descriptor) {
    struct pollfd entry = {.fd = descriptor, .events = POLLIN};
    return poll(&entry, 1, 0) > 0;
}

enum { PATH_SIZE = 32 + 256 };

static const char *path_at(int directory, const char *name, char *buffer) {
    snprintf(buffer, PATH_SIZE, *name ? "/proc/thread-self/fd/%d/%s" : "/proc/thread-self/fd/%d", directory, name);
    return buffer;
}

// Since Linux 6.13, in the common table of system calls. Three times as fast as the way by /proc.
enum { GETXATTRAT = 464, LISTXATTRAT = 465 };

struct xattr_arguments {
    uint64_t value;
    uint32_t size;
    uint32_t flags;
};

// Set once a call has been refused as unknown, or by a sandbox.
static atomic_bool xattr_calls_are_missing;

// Only for names: these calls refuse O_PATH descriptors themselves.
static int has_xattr_calls(const char *name) {
    return *name && !atomic_load_explicit(&xattr_calls_are_missing, memory_order_relaxed);
}

static int is_missing(long result) {
    if (result >= 0 || (errno != ENOSYS && errno != EPERM)) return 0;
    atomic_store_explicit(&xattr_calls_are_missing, 1, memory_order_relaxed);
    return 1;
}

int64_t clinux_fuse_xattr_list_at(int directory, const char *name, char *names, size_t size) {
    if (has_xattr_calls(name)) {
        long result = syscall(LISTXATTRAT, directory, name, AT_SYMLINK_NOFOLLOW, names, size);
        if (!is_missing(result)) return result < 0 ? -errno : result;
    }
    char path[PATH_SIZE];
    path_at(directory, name, path);
    ssize_t result = *name ? llistxattr(path, names, size) : listxattr(path, names, size);
    return result < 0 ? -errno : result;
}

int64_t clinux_fuse_xattr_get_at(int directory, const char *name, const char *attribute, void *value, size_t size) {
    if (has_xattr_calls(name)) {
        struct xattr_arguments arguments = {(uintptr_t)value, (uint32_t)size, 0};
        long result = syscall(GETXATTRAT, directory, name, AT_SYMLINK_NOFOLLOW, attribute, &arguments, sizeof arguments);
        if (!is_missing(result)) return result < 0 ? -errno : result;
    }
    char path[PATH_SIZE];
    path_at(directory, name, path);
    ssize_t result = *name ? lgetxattr(path, attribute, value, size) : getxattr(path, attribute, value, size);
    return result < 0 ? -errno : result;
}

int clinux_fuse_thread_id(void) { return (int)syscall(SYS_gettid); }

static _Thread_local int has_own_mask;

int clinux_fuse_prepare_thread(const char *name, int is_woken) {
    prctl(PR_SET_NAME, name, 0, 0, 0);
    sigset_t set;
    sigfillset(&set);
    if (is_woken) sigdelset(&set, SIGURG);
    int error = pthread_sigmask(SIG_SETMASK, &set, NULL);
    if (error) return -error;
    // The umask belongs to the filesystem context, which threads share unless they ask for their own. Some sandboxes forbid that;
    // then it is the process's, which makes its private files with explicit modes.
    has_own_mask = unshare(CLONE_FS) == 0;
    umask(0);
    return 0;
}

int clinux_fuse_leave_descriptors(void) {
    /* The system call itself: older C libraries have no function for it. */
    return syscall(SYS_close_range, 3u, ~0u, 2u /* CLOSE_RANGE_UNSHARE */) < 0 ? -errno : 0;
}

uint32_t clinux_fuse_begin_mask(uint32_t mask, uint32_t mode) {
    if (!has_own_mask) return mode & ~mask;
    umask((mode_t)mask);
    return mode;
}

void clinux_fuse_end_mask(void) {
    if (has_own_mask) umask(0);
}

static void do_nothing(int signal) { (void)signal; }

int clinux_fuse_install_wakeup(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = do_nothing;  // without SA_RESTART: a blocking read ends with EINTR
    return sigaction(SIGURG, &action, NULL) < 0 ? -errno : 0;
}

int clinux_fuse_wake(uint64_t thread) { return -pthread_kill((pthread_t)thread, SIGURG); }

int clinux_fuse_unmount(const char *path, int flags) { return umount2(path, flags) < 0 ? -errno : 0; }

int64_t clinux_fuse_filesystem_type(int descriptor) {
    struct statfs status;
    return fstatfs(descriptor, &status) < 0 ? -errno : (int64_t)status.f_type;
}

void clinux_fuse_name_unnamed(void *message, size_t size) {
    enum { CREATE = 35, TMPFILE = 51 };
    struct fuse_header_start {
        uint32_t length, opcode;
    } *header = message;
    if (size >= sizeof *header && header->opcode == TMPFILE) header->opcode = CREATE;
}
