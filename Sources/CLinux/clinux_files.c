#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

_Static_assert(CLINUX_O_PATH == O_PATH, "O_PATH");
_Static_assert(CLINUX_RENAME_NOREPLACE == RENAME_NOREPLACE, "RENAME_NOREPLACE");
_Static_assert(CLINUX_RENAME_EXCHANGE == RENAME_EXCHANGE, "RENAME_EXCHANGE");
_Static_assert(CLINUX_FALLOC_KEEP_SIZE == FALLOC_FL_KEEP_SIZE, "FALLOC_FL_KEEP_SIZE");
_Static_assert(CLINUX_FALLOC_PUNCH_HOLE == FALLOC_FL_PUNCH_HOLE, "FALLOC_FL_PUNCH_HOLE");
_Static_assert(CLINUX_SEEK_DATA == SEEK_DATA && CLINUX_SEEK_HOLE == SEEK_HOLE, "SEEK_DATA, SEEK_HOLE");
_Static_assert((int)CLINUX_XATTR_CREATE == (int)XATTR_CREATE, "XATTR_CREATE");
_Static_assert((int)CLINUX_XATTR_REPLACE == (int)XATTR_REPLACE, "XATTR_REPLACE");

#define RETRY(call)                              \
    ({                                           \
        __typeof__(call) result_;                \
        do {                                     \
            result_ = (call);                    \
        } while (result_ == -1 && errno == EINTR); \
        result_ == -1 ? -errno : result_;        \
    })

enum { PROC_PATH_SIZE = 32 };

static const char *proc_path(int descriptor, char *buffer) {
    snprintf(buffer, PROC_PATH_SIZE, "/proc/thread-self/fd/%d", descriptor);
    return buffer;
}

static void copy_status(const struct stat *from, struct clinux_status *to) {
    to->device = from->st_dev;
    to->inode = from->st_ino;
    to->links = from->st_nlink;
    to->size = from->st_size;
    to->blocks = from->st_blocks;
    to->accessed_seconds = from->st_atim.tv_sec;
    to->accessed_nanoseconds = from->st_atim.tv_nsec;
    to->modified_seconds = from->st_mtim.tv_sec;
    to->modified_nanoseconds = from->st_mtim.tv_nsec;
    to->changed_seconds = from->st_ctim.tv_sec;
    to->changed_nanoseconds = from->st_ctim.tv_nsec;
    to->mode = from->st_mode;
    to->user = from->st_uid;
    to->group = from->st_gid;
}

int clinux_status_at(int directory, const char *name, struct clinux_status *out) {
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0) return -errno;
    copy_status(&status, out);
    return 0;
}

int clinux_status_of(int descriptor, struct clinux_status *out) {
    struct stat status;
    if (fstat(descriptor, &status) < 0) return -errno;
    copy_status(&status, out);
    return 0;
}

int clinux_birth_at(int directory, const char *name, int64_t *seconds, int64_t *nanoseconds) {
    struct statx status;
    if (statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_BTIME, &status) < 0) return -errno;
    if (!(status.stx_mask & STATX_BTIME)) return -ENODATA;
    *seconds = status.stx_btime.tv_sec;
    *nanoseconds = status.stx_btime.tv_nsec;
    return 0;
}

int clinux_handle_at(int directory, const char *name, int32_t *type, uint8_t *bytes) {
    union {
        struct file_handle handle;
        char room[sizeof(struct file_handle) + CLINUX_HANDLE_BYTES];
    } value;
    int mount;
    memset(&value, 0, sizeof value);
    value.handle.handle_bytes = CLINUX_HANDLE_BYTES;
    if (name_to_handle_at(directory, name, &value.handle, &mount, AT_EMPTY_PATH) < 0) return -errno;
    *type = value.handle.handle_type;
    memcpy(bytes, value.handle.f_handle, value.handle.handle_bytes);
    return (int)value.handle.handle_bytes;
}

int clinux_open_at(int directory, const char *name, int flags, uint32_t mode) {
    return RETRY(openat(directory, name, flags | O_CLOEXEC, mode));
}

int clinux_open_beneath(int directory, const char *path, int flags) {
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };
    // With RESOLVE_BENEATH the kernel answers EAGAIN when a rename anywhere could have disturbed a walk through "..": paths of names
    // have none, so it does not happen here, but the manual page asks for a retry.
    long result;
    do {
        result = syscall(SYS_openat2, directory, path, &how, sizeof how);
    } while (result < 0 && (errno == EINTR || errno == EAGAIN));
    return result < 0 ? -errno : (int)result;
}

int clinux_reopen(int descriptor, int flags) {
    char path[PROC_PATH_SIZE];
    return RETRY(open(proc_path(descriptor, path), flags | O_CLOEXEC));
}

int clinux_rename_at(int from_directory, const char *from, int to_directory, const char *to, uint32_t flags) {
    return RETRY(renameat2(from_directory, from, to_directory, to, flags));
}

int clinux_fallocate(int descriptor, int mode, int64_t offset, int64_t length) {
    return RETRY(fallocate(descriptor, mode, offset, length));
}

int clinux_keep_room(const char *path, int64_t bytes) {
    int descriptor = RETRY(open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (descriptor < 0) return descriptor;
    int result = clinux_fallocate(descriptor, 0, 0, bytes);
    close(descriptor);
    if (result < 0) unlink(path);
    return result;
}

int64_t clinux_copy_range(int from, int64_t from_offset, int to, int64_t to_offset, size_t length) {
    off64_t source = from_offset, target = to_offset;
    return RETRY(copy_file_range(from, &source, to, &target, length, 0));
}

int clinux_truncate(int descriptor, int64_t size) { return RETRY(ftruncate(descriptor, size)); }

int clinux_try_lock(int descriptor) { return RETRY(flock(descriptor, LOCK_EX | LOCK_NB)); }

int clinux_try_lock_for(int descriptor, int milliseconds) {
    const int step = 25;
    for (int waited = 0;; waited += step) {
        int result = clinux_try_lock(descriptor);
        if (result != -EWOULDBLOCK || waited >= milliseconds) return result;
        usleep(step * 1000);
    }
}

int clinux_unlock(int descriptor) { return RETRY(flock(descriptor, LOCK_UN)); }

int64_t clinux_pread(int descriptor, void *buffer, size_t length, int64_t offset) {
    return RETRY(pread(descriptor, buffer, length, offset));
}

// Moves the beginning of both parts, taken together, by so many bytes.
static void advance(struct iovec parts[2], size_t count) {
    for (int index = 0; index < 2 && count > 0; index++) {
        size_t part = count < parts[index].iov_len ? count : parts[index].iov_len;
        parts[index].iov_base = (char *)parts[index].iov_base + part;
        parts[index].iov_len -= part;
        count -= part;
    }
}

int64_t clinux_pread_two(
    int descriptor, void *first, size_t first_length, void *second, size_t second_length, int64_t offset) {
    struct iovec parts[2] = {{first, first_length}, {second, second_length}};
    int64_t done = 0;
    while (parts[0].iov_len + parts[1].iov_len > 0) {
        ssize_t result = RETRY(preadv(descriptor, parts, 2, offset + done));
        if (result < 0) return result;
        if (result == 0) break;
        done += result;
        advance(parts, (size_t)result);
    }
    return done;
}

int clinux_pwrite_two(
    int descriptor, const void *first, size_t first_length, const void *second, size_t second_length, int64_t offset) {
    struct iovec parts[2] = {{(void *)first, first_length}, {(void *)second, second_length}};
    while (parts[0].iov_len + parts[1].iov_len > 0) {
        ssize_t written = RETRY(pwritev(descriptor, parts, 2, offset));
        if (written < 0) return (int)written;
        if (written == 0) return -EIO;
        offset += written;
        advance(parts, (size_t)written);
    }
    return 0;
}

int clinux_pwrite_all(int descriptor, const void *buffer, size_t length, int64_t offset) {
    const char *next = buffer;
    while (length > 0) {
        ssize_t written = RETRY(pwrite(descriptor, next, length, offset));
        if (written < 0) return (int)written;
        if (written == 0) return -EIO;
        next += written;
        offset += written;
        length -= (size_t)written;
    }
    return 0;
}

int clinux_pwrite_or_punch(int descriptor, const void *buffer, size_t length, int64_t offset) {
    const char *bytes = buffer;
    // Each byte is the one before it, and the first is zero: of other content only that is looked at.
    if (length >= 65536 && bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0) {
        int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
        if (clinux_fallocate(descriptor, mode, offset, (int64_t)length - 1) == 0) {
            // With this one the file is as long as if all had been written, whoever else writes to it meanwhile.
            return clinux_pwrite_all(descriptor, bytes + length - 1, 1, offset + (int64_t)length - 1);
        }
        // A filesystem without holes, perhaps.
    }
    return clinux_pwrite_all(descriptor, buffer, length, offset);
}

int64_t clinux_write(int descriptor, const void *buffer, size_t length) { return RETRY(write(descriptor, buffer, length)); }

int clinux_fsync(int descriptor) { return RETRY(fsync(descriptor)); }

int clinux_fdatasync(int descriptor) { return RETRY(fdatasync(descriptor)); }

int clinux_syncfs(int descriptor) { return RETRY(syncfs(descriptor)); }

int clinux_wait_written(int descriptor) {
    return RETRY(sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE));
}

int64_t clinux_xattr_get(int descriptor, const char *name, void *value, size_t size) {
    ssize_t result = fgetxattr(descriptor, name, value, size);
    if (result < 0 && errno == EBADF) {
        char path[PROC_PATH_SIZE];
        result = getxattr(proc_path(descriptor, path), name, value, size);
    }
    return result < 0 ? -errno : result;
}

int clinux_xattr_set(int descriptor, const char *name, const void *value, size_t size, int flags) {
    int result = fsetxattr(descriptor, name, value, size, flags);
    if (result < 0 && errno == EBADF) {
        char path[PROC_PATH_SIZE];
        result = setxattr(proc_path(descriptor, path), name, value, size, flags);
    }
    return result < 0 ? -errno : 0;
}

int clinux_xattr_remove(int descriptor, const char *name) {
    int result = fremovexattr(descriptor, name);
    if (result < 0 && errno == EBADF) {
        char path[PROC_PATH_SIZE];
        result = removexattr(proc_path(descriptor, path), name);
    }
    return result < 0 ? -errno : 0;
}

int64_t clinux_xattr_list(int descriptor, char *names, size_t size) {
    ssize_t result = flistxattr(descriptor, names, size);
    if (result < 0 && errno == EBADF) {
        char path[PROC_PATH_SIZE];
        result = listxattr(proc_path(descriptor, path), names, size);
    }
    return result < 0 ? -errno : result;
}

int64_t clinux_xattr_list_at(int directory, const char *name, char *names, size_t size) {
#ifdef SYS_listxattrat
    enum { NUMBER = SYS_listxattrat };
#else
    enum { NUMBER = 465 };  // The same everywhere; since Linux 6.13.
#endif
    long result = syscall(NUMBER, directory, name, AT_SYMLINK_NOFOLLOW, names, size);
    if (result < 0 && (errno == ENOSYS || errno == EPERM)) {
        char path[PROC_PATH_SIZE + 256];
        snprintf(path, sizeof path, "/proc/thread-self/fd/%d/%s", directory, name);
        result = llistxattr(path, names, size);
    }
    return result < 0 ? -errno : result;
}

int clinux_chmod(int descriptor, uint32_t mode) {
    int result = fchmod(descriptor, mode);
    if (result < 0 && errno == EBADF) {
        char path[PROC_PATH_SIZE];
        result = chmod(proc_path(descriptor, path), mode);
    }
    return result < 0 ? -errno : 0;
}

int clinux_set_modified(int descriptor, int64_t seconds, int64_t nanoseconds) {
    const struct timespec times[2] = {
        {.tv_sec = 0, .tv_nsec = UTIME_OMIT},
        {.tv_sec = seconds, .tv_nsec = nanoseconds},
    };
    return RETRY(utimensat(descriptor, "", times, AT_EMPTY_PATH));
}

int64_t clinux_getdents(int descriptor, void *buffer, size_t size) {
    long result = syscall(SYS_getdents64, descriptor, buffer, size);
    return result < 0 ? -errno : result;
}

int64_t clinux_readlink_at(int directory, const char *name, char *buffer, size_t size) {
    return RETRY(readlinkat(directory, name, buffer, size));
}

int clinux_memory_file(int may_be_sealed) {
    int descriptor = memfd_create("ubiquity", MFD_CLOEXEC | (may_be_sealed ? MFD_ALLOW_SEALING : 0));
    return descriptor < 0 ? -errno : descriptor;
}
