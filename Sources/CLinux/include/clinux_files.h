// Files: what Glibc's module lacks (_GNU_SOURCE only, variadic, or no wrapper at all), and what must work on O_PATH descriptors.
// Every function returns the call's result or -errno; a call interrupted by a signal is repeated.
#ifndef CLINUX_FILES_H
#define CLINUX_FILES_H
#include <stddef.h>
#include <stdint.h>

// Constants that need _GNU_SOURCE.
enum {
    CLINUX_O_PATH = 010000000,
    // With O_DIRECTORY.
    CLINUX_O_TMPFILE = 020000000,
    CLINUX_RENAME_NOREPLACE = 1,
    CLINUX_RENAME_EXCHANGE = 2,
    CLINUX_FALLOC_KEEP_SIZE = 1,
    CLINUX_FALLOC_PUNCH_HOLE = 2,
    CLINUX_SEEK_DATA = 3,
    CLINUX_SEEK_HOLE = 4,
    CLINUX_XATTR_CREATE = 1,
    CLINUX_XATTR_REPLACE = 2,
    CLINUX_HANDLE_BYTES = 24,
};

// struct stat without its macros, whose names Swift does not see.
struct clinux_status {
    uint64_t device, inode, links;
    int64_t size, blocks;
    int64_t accessed_seconds, accessed_nanoseconds;
    int64_t modified_seconds, modified_nanoseconds;
    int64_t changed_seconds, changed_nanoseconds;
    uint32_t mode, user, group;
};

// fstatat, never following a link at the end.
int clinux_status_at(int directory, const char *name, struct clinux_status *out);
// fstat; works on O_PATH.
int clinux_status_of(int descriptor, struct clinux_status *out);
// statx's birth time; -ENODATA where the filesystem has none.
int clinux_birth_at(int directory, const char *name, int64_t *seconds, int64_t *nanoseconds);

// name_to_handle_at, not following a link; an empty name means the descriptor itself. Returns the handle's length in bytes, at most
// CLINUX_HANDLE_BYTES, or -EOVERFLOW.
int clinux_handle_at(int directory, const char *name, int32_t *type, uint8_t *bytes);

// openat, which is variadic. O_CLOEXEC is always added.
int clinux_open_at(int directory, const char *name, int flags, uint32_t mode);
// openat2 with RESOLVE_BENEATH | NO_SYMLINKS | NO_XDEV: leaves neither the directory nor its filesystem. O_CLOEXEC is always added.
int clinux_open_beneath(int directory, const char *path, int flags);
// A new open file description of the inode behind any descriptor, also an O_PATH one.
int clinux_reopen(int descriptor, int flags);

int clinux_rename_at(int from_directory, const char *from, int to_directory, const char *to, uint32_t flags);
int clinux_fallocate(int descriptor, int mode, int64_t offset, int64_t length);
// Makes a file that takes so much of the disk, or completes it: who removes it makes room. It is not left half made.
int clinux_keep_room(const char *path, int64_t bytes);
int64_t clinux_copy_range(int from, int64_t from_offset, int to, int64_t to_offset, size_t length);
int clinux_truncate(int descriptor, int64_t size);
// Tries to lock the open file description for itself alone: 0 or -EWOULDBLOCK.
int clinux_try_lock(int descriptor);
// The same, of a lock whose holder may be about to end, or to be gone already but for its files: waits for it so long. flock() itself has no
// time limit.
int clinux_try_lock_for(int descriptor, int milliseconds);
// Gives the lock up, also where a process that is just being started still has the description.
int clinux_unlock(int descriptor);

int64_t clinux_pread(int descriptor, void *buffer, size_t length, int64_t offset);
/* Fills both buffers with what lies together at the offset. Returns the number of bytes, fewer at the end of the file. */
int64_t clinux_pread_two(
    int descriptor, void *first, size_t first_length, void *second, size_t second_length, int64_t offset);
// Writes all of it, or returns the error.
int clinux_pwrite_all(int descriptor, const void *buffer, size_t length, int64_t offset);
// The same; if all of it is zeros, and enough to free room, the file gets a hole there, up to the last byte.
int clinux_pwrite_or_punch(int descriptor, const void *buffer, size_t length, int64_t offset);
// Writes all of both, one after the other, or returns the error.
int clinux_pwrite_two(
    int descriptor, const void *first, size_t first_length, const void *second, size_t second_length, int64_t offset);
// One write at the end of a descriptor opened with O_APPEND; may be short.
int64_t clinux_write(int descriptor, const void *buffer, size_t length);
int clinux_fsync(int descriptor);
int clinux_fdatasync(int descriptor);
int clinux_syncfs(int descriptor);
// Waits for what is being written of a file, and tells of an error of that which this descriptor was not told of. Cheap after syncfs.
int clinux_wait_written(int descriptor);

// These four work on O_PATH descriptors too (through /proc/thread-self/fd).
int64_t clinux_xattr_get(int descriptor, const char *name, void *value, size_t size);
int clinux_xattr_set(int descriptor, const char *name, const void *value, size_t size, int flags);
int clinux_xattr_remove(int descriptor, const char *name);
int64_t clinux_xattr_list(int descriptor, char *names, size_t size);
// The same of a name in a directory, never following a link at the end.
int64_t clinux_xattr_list_at(int directory, const char *name, char *names, size_t size);

// chmod of the inode behind any descriptor, also an O_PATH one.
int clinux_chmod(int descriptor, uint32_t mode);
// Sets the modification time, leaves the access time; works on O_PATH, so on symbolic links too.
int clinux_set_modified(int descriptor, int64_t seconds, int64_t nanoseconds);

// Reads directory entries (linux_dirent64) into the buffer: bytes read, 0 at the end.
int64_t clinux_getdents(int descriptor, void *buffer, size_t size);
// readlinkat; an empty name means the O_PATH descriptor itself.
int64_t clinux_readlink_at(int directory, const char *name, char *buffer, size_t size);

// memfd_create: a file that has no name and lies in memory; close-on-exec.
int clinux_memory_file(int may_be_sealed);
#endif
