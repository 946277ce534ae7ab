// What the FUSE driver needs and Swift cannot import: the kernel's INIT flags that Debian 12's libfuse does not know, attributes by
// (folder, name), per-thread settings. Every function returns the call's result or -errno.
#ifndef CLINUX_FUSE_H
#define CLINUX_FUSE_H
#include <sys/types.h>
#include <stddef.h>
#include <stdint.h>

// Constants that need _GNU_SOURCE or hide behind macros.
enum {
    CLINUX_AT_EMPTY_PATH = 0x1000,
    CLINUX_MNT_DETACH = 2,
    CLINUX_UMOUNT_NOFOLLOW = 8,
#if defined(__aarch64__) || defined(__arm__)
    CLINUX_O_DIRECT = 0200000,
#else
    CLINUX_O_DIRECT = 040000,
#endif
    CLINUX_UTIME_NOW = 0x3fffffff,
    CLINUX_UTIME_OMIT = 0x3ffffffe,
    // Of the extension flags.
    CLINUX_INIT2_PASSTHROUGH = 1 << 5,
    CLINUX_FUSE_MAGIC = 0x65735546,
};

// What the kernel offered in its INIT request.
struct clinux_fuse_offer {
    uint32_t flags, flags2;
};
// Whether a message read from /dev/fuse is the INIT request; fills in its offer.
int clinux_fuse_is_init(const void *message, size_t size, struct clinux_fuse_offer *offer);
// Adds to the body of the INIT reply, as far as offered: PARALLEL_DIROPS (libfuse 3.14 never sends it: libfuse#861),
// HANDLE_KILLPRIV_V2 (without it every write asks for security.capability first), DIRECT_IO_ALLOW_MMAP; with `stack_depth` > 0 PASSTHROUGH
// to backing filesystems of a smaller depth. Returns the extension flags that are now set, or -EINVAL if this is no such body.
int clinux_fuse_extend_init(void *body, size_t size, struct clinux_fuse_offer offer, uint32_t stack_depth);

// Whether answering a request means going to the disk, or moving many bytes.
int clinux_fuse_takes_long(const void *message, size_t size);
// splice(2), as libfuse calls it for answers that it has gathered in a pipe: -1 and errno after a failure. That nobody waits for the
// answer any more is none.
ssize_t clinux_fuse_splice(int from, off_t *from_offset, int to, off_t *to_offset, size_t length, unsigned flags);
// Whether a descriptor can be read at once.
int clinux_fuse_is_readable(int descriptor);

// Makes a CREATE of a TMPFILE, which libfuse before 3.17 does not know. Both have the same body; the name that the kernel gives to a file
// without one is "/".
void clinux_fuse_name_unnamed(void *message, size_t size);

// Makes the kernel ask for every name again, also for those that it knows not to be there. Kernels before 6.16 answer -EINVAL, and
// libfuse before 3.18 does not know how.
int clinux_fuse_forget_entries(int descriptor);

// Attributes of a name in a folder, never following a link at the end. An empty name means the descriptor itself.
int64_t clinux_fuse_xattr_list_at(int directory, const char *name, char *names, size_t size);
int64_t clinux_fuse_xattr_get_at(int directory, const char *name, const char *attribute, void *value, size_t size);

int clinux_fuse_thread_id(void);
// Prepares a thread of the driver: its name (15 bytes are used), every signal blocked but, for one that shall be woken, SIGURG, and an
// umask of its own, which is 0.
int clinux_fuse_prepare_thread(const char *name, int is_woken);
// From now on the calling thread has a table of descriptors of its own, in which only the first three are left.
int clinux_fuse_leave_descriptors(void);
// Gives the thread a umask until the end is called: the disk applies it, unless a default ACL takes its place. Returns the mode to make
// something with; where threads cannot have umasks of their own, the mask is applied to it.
uint32_t clinux_fuse_begin_mask(uint32_t mask, uint32_t mode);
void clinux_fuse_end_mask(void);
// Installs a handler for SIGURG that does nothing, so that it ends a blocking read; its default is to be ignored.
int clinux_fuse_install_wakeup(void);
int clinux_fuse_wake(uint64_t thread);

int clinux_fuse_unmount(const char *path, int flags);
// f_type of a filesystem, by descriptor.
int64_t clinux_fuse_filesystem_type(int descriptor);
#endif
