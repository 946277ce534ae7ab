// Kernel passthrough (Linux 6.9): an open is bound to a backing file, and its reads, writes and mappings never leave the kernel. Debian
// 12's libfuse and kernel headers know nothing of it. Every function returns the call's result or -errno.
#ifndef CLINUX_PASSTHROUGH_H
#define CLINUX_PASSTHROUGH_H
#include <stddef.h>
#include <stdint.h>

// fuse_open_out's flags.
enum {
    CLINUX_FOPEN_DIRECT_IO = 1 << 0,
    CLINUX_FOPEN_KEEP_CACHE = 1 << 1,
    CLINUX_FOPEN_CACHE_DIR = 1 << 3,
    CLINUX_FOPEN_NOFLUSH = 1 << 5,
    CLINUX_FOPEN_PASSTHROUGH = 1 << 7,
};

// The kernel's fuse_open_out: the reply to OPEN.
struct clinux_fuse_opened {
    uint64_t handle;
    uint32_t flags;
    int32_t backing;
};

// The kernel's fuse_entry_out and fuse_open_out: the reply to CREATE.
struct clinux_fuse_created {
    uint64_t entry[16];
    struct clinux_fuse_opened opened;
};
// Both timeouts are infinite. `status` is a `struct stat`, whose header clashes with Swift's Glibc module.
void clinux_fuse_set_created(struct clinux_fuse_created *reply, uint64_t node, const void *status);

// Gives the kernel a file for opens of this connection to be bound to. Returns its id (> 0). Needs CAP_SYS_ADMIN.
int clinux_fuse_backing_open(int connection, int file);
int clinux_fuse_backing_close(int connection, int id);

// The peer of a socket, as the kernel knows it.
int clinux_packets_peer(int socket, uint32_t *user, uint32_t *group);

// Whether an inode is open elsewhere, mappings counted: with `reads` in any way, else for writing. The descriptor is the only one that is
// not elsewhere: for `reads` it must be writable, else read-only. 0: it is not. -EAGAIN: it is. Takes a lease for a moment, so SIGIO must
// be ignored (clinux_ignore_leases).
int clinux_check_unused(int file, int reads);
int clinux_ignore_leases(void);

// Whether this process's effective capabilities have CAP_SYS_ADMIN.
int clinux_may_administer(void);

// A request to the passthrough helper, with the connection and, to open, the file. The answer is one int32_t: the id, 0 or -errno.
struct clinux_backing_request {
    uint32_t version;
    uint32_t verb;
    int32_t id;
};
enum { CLINUX_BACKING_OPEN = 1, CLINUX_BACKING_CLOSE = 2 };

// A message of `size` bytes, with descriptors, on a connected socket (SOCK_SEQPACKET).
int64_t clinux_send_descriptors(int socket, const void *message, size_t size, const int *descriptors, size_t count);
// At most `*count` descriptors are taken, the number is left there; they close on exec. A message that is longer than `size` counts as
// longer. 0 is the peer's end, or an empty message.
int64_t clinux_receive_descriptors(int socket, void *message, size_t size, int *descriptors, size_t *count);
// A message without descriptors, waited for no longer than this. Interrupts do not end it. -ETIMEDOUT: none came.
int64_t clinux_receive_answer(int socket, void *message, size_t size, int milliseconds);
// Ends receiving: gives the message that came nevertheless, if any. A peer that answers later learns that nobody has read it.
int64_t clinux_last_answer(int socket, void *message, size_t size);
// How long sending may wait for a peer that does not read.
void clinux_limit_sending(int socket, int seconds);
// A connected SOCK_SEQPACKET socket, close-on-exec, that never blocks.
int clinux_connect_packets(const char *path);
// A listening one that everybody may connect to; an old socket there is replaced, and a missing folder is made.
int clinux_listen_packets(const char *path);
// Whether an open file may be bound for this user: a regular file of his on a local disk, open for reading and writing. 0 or -errno.
int clinux_check_backing_file(int file, uint32_t user);
// Whether it is a connection of the FUSE driver. 0 or -errno.
int clinux_check_connection(int connection);
// Gives all rights of this process up but those to bind files, and to be another user for it. Before there are threads. 0 or -errno.
int clinux_keep_binding_rights(void);
// From now on this thread's rights over files are this user's. 0 or -errno.
int clinux_become_for_files(uint32_t user, uint32_t group);
#endif
