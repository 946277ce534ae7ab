#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <string.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

// linux/fuse.h of 6.9 and later.
struct backing_map {
    int32_t descriptor;
    uint32_t flags;
    uint64_t padding;
};
#define BACKING_OPEN _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

// Filesystems that linux/magic.h does not name.
enum { JFS_MAGIC = 0x3153464a, ZFS_MAGIC = 0x2fc12fc1 };
#define BCACHEFS_MAGIC 0xca451a4eUL

_Static_assert(sizeof(struct fuse_entry_out) == sizeof(uint64_t[16]), "fuse_entry_out");
_Static_assert(sizeof(struct fuse_open_out) == sizeof(struct clinux_fuse_opened), "fuse_open_out");
_Static_assert(CLINUX_FOPEN_KEEP_CACHE == FOPEN_KEEP_CACHE && CLINUX_FOPEN_NOFLUSH == FOPEN_NOFLUSH, "flags of fuse_open_out");

void clinux_fuse_set_created(struct clinux_fuse_created *reply, uint64_t node, const void *raw) {
    const struct stat *status = raw;
    struct fuse_entry_out *out = (struct fuse_entry_out *)reply->entry;
    memset(out, 0, sizeof *out);
    out->nodeid = node;
    out->entry_valid = out->attr_valid = 1000000000;
    out->attr.ino = status->st_ino;
    out->attr.size = (uint64_t)status->st_size;
    out->attr.blocks = (uint64_t)status->st_blocks;
    out->attr.atime = (uint64_t)status->st_atim.tv_sec;
    out->attr.mtime = (uint64_t)status->st_mtim.tv_sec;
    out->attr.ctime = (uint64_t)status->st_ctim.tv_sec;
    out->attr.atimensec = (uint32_t)status->st_atim.tv_nsec;
    out->attr.mtimensec = (uint32_t)status->st_mtim.tv_nsec;
    out->attr.ctimensec = (uint32_t)status->st_ctim.tv_nsec;
    out->attr.mode = status->st_mode;
    out->attr.nlink = (uint32_t)status->st_nlink;
    out->attr.uid = status->st_uid;
    out->attr.gid = status->st_gid;
    out->attr.rdev = (uint32_t)status->st_rdev;
    out->attr.blksize = (uint32_t)status->st_blksize;
}

int clinux_fuse_backing_open(int connection, int file) {
    struct backing_map map = {.descriptor = file};
    int id = ioctl(connection, BACKING_OPEN, &map);
    return id < 0 ? -errno : id;
}

int clinux_fuse_backing_close(int connection, int id) {
    uint32_t number = (uint32_t)id;
    return ioctl(connection, BACKING_CLOSE, &number) < 0 ? -errno : 0;
}

int clinux_may_administer(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    memset(data, 0, sizeof data);
    if (syscall(SYS_capget, &header, data) < 0) return 0;
    return (data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN)) != 0;
}

enum { MOST_DESCRIPTORS = 4 };

int64_t clinux_send_descriptors(int socket, const void *message, size_t size, const int *descriptors, size_t count) {
    if (count > MOST_DESCRIPTORS) return -EINVAL;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * MOST_DESCRIPTORS)];
    } control;
    memset(&control, 0, sizeof control);
    struct iovec part = {.iov_base = (void *)message, .iov_len = size};
    struct msghdr envelope = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        envelope.msg_control = control.room;
        envelope.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(&control.header), descriptors, sizeof(int) * count);
    }
    ssize_t sent = sendmsg(socket, &envelope, MSG_NOSIGNAL);
    return sent < 0 ? -errno : sent;
}

int64_t clinux_receive_descriptors(int socket, void *message, size_t size, int *descriptors, size_t *count) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * MOST_DESCRIPTORS)];
    } control;
    struct iovec part = {.iov_base = message, .iov_len = size};
    struct msghdr envelope = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t received = recvmsg(socket, &envelope, MSG_CMSG_CLOEXEC | MSG_TRUNC);
    int error = errno;
    size_t room = *count;
    *count = 0;
    if (received < 0) return -error;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&envelope); header; header = CMSG_NXTHDR(&envelope, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t given = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t index = 0; index < given; index++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + index * sizeof(int), sizeof descriptor);
            // Whatever there is no room for must not stay open.
            if (*count < room) descriptors[(*count)++] = descriptor; else close(descriptor);
        }
    }
    return received;
}

static int64_t now_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clinux_receive_answer(int socket, void *message, size_t size, int milliseconds) {
    int64_t deadline = now_milliseconds() + milliseconds;
    for (;;) {
        // Readers of the driver are woken by a signal now and then: that must leave no answer behind.
        ssize_t received = recv(socket, message, size, MSG_DONTWAIT);
        if (received >= 0) return received;
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return -errno;
        int64_t left = deadline - now_milliseconds();
        if (left <= 0) return -ETIMEDOUT;
        struct pollfd entry = {.fd = socket, .events = POLLIN};
        if (poll(&entry, 1, (int)left) < 0 && errno != EINTR) return -errno;
    }
}

int64_t clinux_last_answer(int socket, void *message, size_t size) {
    // In this order: what the peer sends from now on fails over there, and what it has sent before is found here.
    (void)shutdown(socket, SHUT_RD);
    ssize_t received = recv(socket, message, size, MSG_DONTWAIT);
    return received < 0 ? -errno : received;
}

void clinux_limit_sending(int socket, int seconds) {
    struct timeval limit = {.tv_sec = seconds};
    (void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

int clinux_connect_packets(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    // Not blocking: else it would wait for room in the queue of a listener that has stopped accepting.
    int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) return -errno;
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) < 0) {
        int error = errno;
        close(descriptor);
        return -error;
    }
    return descriptor;
}

int clinux_listen_packets(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    char folder[sizeof address.sun_path];
    strcpy(folder, path);
    char *end = strrchr(folder, '/');
    if (end && end != folder) {
        *end = 0;
        (void)mkdir(folder, 0755);
    }
    (void)unlink(path);
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0 || chmod(path, 0666) < 0 || listen(descriptor, 64) < 0) {
        int error = errno;
        close(descriptor);
        return -error;
    }
    return descriptor;
}

int clinux_packets_peer(int socket, uint32_t *user, uint32_t *group) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return -errno;
    *user = peer.uid;
    *group = peer.gid;
    return 0;
}

int clinux_check_backing_file(int file, uint32_t user) {
    // The kernel will open it for reading and writing, whatever this descriptor is for: the peer has to have shown that it may.
    int flags = fcntl(file, F_GETFL);
    if (flags < 0) return -errno;
    if ((flags & O_PATH) || (flags & O_ACCMODE) != O_RDWR || (flags & O_APPEND)) return -EACCES;
    // Local disks only: filesystems of other programs and machines tell us anything, and of what looks like a file some is none.
    struct statfs filesystem;
    if (fstatfs(file, &filesystem) < 0) return -errno;
    switch ((unsigned long)filesystem.f_type) {
    case EXT4_SUPER_MAGIC: case BTRFS_SUPER_MAGIC: case XFS_SUPER_MAGIC: case F2FS_SUPER_MAGIC: case NILFS_SUPER_MAGIC:
    case TMPFS_MAGIC: case OVERLAYFS_SUPER_MAGIC: case JFS_MAGIC: case BCACHEFS_MAGIC: case ZFS_MAGIC: break;
    default: return -EOPNOTSUPP;
    }
    struct stat status;
    if (fstat(file, &status) < 0) return -errno;
    if (!S_ISREG(status.st_mode)) return -EINVAL;
    if (status.st_uid != user && user != 0) return -EPERM;
    // The kernel looks at seals when the file itself is mapped, not when it is mapped through another: whoever binds a file and seals it
    // then, and passes it on as one that nobody changes any more, could still change it. Files that can never be sealed have this one.
    int seals = fcntl(file, F_GET_SEALS);
    return seals < 0 || seals == F_SEAL_SEAL ? 0 : -EPERM;
}

int clinux_check_connection(int connection) {
    struct stat status;
    if (fstat(connection, &status) < 0) return -errno;
    return S_ISCHR(status.st_mode) && status.st_rdev == makedev(10, 229) ? 0 : -EINVAL;
}

int clinux_keep_binding_rights(void) {
    // The kernel remembers the rights of whoever binds a file, and uses them for each access: nothing of root's but the one may be left.
    if (setgroups(0, NULL) < 0) return -errno;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    memset(data, 0, sizeof data);
    const int kept[] = {CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID};
    for (size_t index = 0; index < sizeof kept / sizeof *kept; index++) {
        data[CAP_TO_INDEX(kept[index])].permitted |= CAP_TO_MASK(kept[index]);
        data[CAP_TO_INDEX(kept[index])].effective |= CAP_TO_MASK(kept[index]);
    }
    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int clinux_become_for_files(uint32_t user, uint32_t group) {
    (void)setfsgid(group);
    (void)setfsuid(user);
    // They tell of no failure but by what is set afterwards.
    return setfsuid(user) == (int)user && setfsgid(group) == (int)group ? 0 : -EPERM;
}

int clinux_check_unused(int file, int reads) {
    if (fcntl(file, F_SETLEASE, reads ? F_WRLCK : F_RDLCK) < 0) return -errno;
    return fcntl(file, F_SETLEASE, F_UNLCK) < 0 ? -errno : 0;
}

int clinux_ignore_leases(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_IGN;
    return sigaction(SIGIO, &action, NULL) < 0 ? -errno : 0;
}
