#define _GNU_SOURCE
#include "clinux_process.h"
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <malloc.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRY(call) ({ __typeof__(call) result_; do result_ = (call); while (result_ < 0 && errno == EINTR); result_; })

static int result(int value) { return value < 0 ? -errno : value; }

// Dispatch's threads block most signals and a service ignores some: a child starts with none of that.
static int plain_signals(posix_spawnattr_t *attributes, short flags) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int failure = posix_spawnattr_setsigmask(attributes, &none);
    if (!failure) failure = posix_spawnattr_setsigdefault(attributes, &all);
    if (!failure) failure = posix_spawnattr_setflags(attributes, flags | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return failure;
}

void clinux_keep_freed_memory(void) {
    // Buffers of a transfer are freed and made anew all the time, a mebibyte at most each.
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

int clinux_spawn_background(const char *program, char *const arguments[], char *const environment[], int log, int ready) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t child = 0;
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure) return -failure;
    failure = posix_spawnattr_init(&attributes);
    if (failure) {
        posix_spawn_file_actions_destroy(&actions);
        return -failure;
    }
    // Both are moved out of the way of 0 to 3 first, so that no dup2 overwrites the other's source.
    int high_log = fcntl(log, F_DUPFD_CLOEXEC, 10);
    int high_ready = fcntl(ready, F_DUPFD_CLOEXEC, 10);
    if (high_log < 0 || high_ready < 0) failure = errno;
    if (!failure) failure = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!failure) failure = posix_spawn_file_actions_adddup2(&actions, high_log, 1);
    if (!failure) failure = posix_spawn_file_actions_adddup2(&actions, high_log, 2);
    if (!failure) failure = posix_spawn_file_actions_adddup2(&actions, high_ready, 3);
    if (!failure) failure = posix_spawn_file_actions_addclosefrom_np(&actions, 4);
    if (!failure) failure = posix_spawn_file_actions_addchdir_np(&actions, "/");
    if (!failure) failure = plain_signals(&attributes, POSIX_SPAWN_SETSID);
    if (!failure) failure = posix_spawn(&child, program, &actions, &attributes, arguments, environment);
    if (high_log >= 0) close(high_log);
    if (high_ready >= 0) close(high_ready);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failure ? -failure : child;
}

int clinux_spawn_foreground(char *const arguments[], char *const environment[]) {
    posix_spawnattr_t attributes;
    pid_t child = 0;
    int failure = posix_spawnattr_init(&attributes);
    if (failure) return -failure;
    failure = plain_signals(&attributes, 0);
    if (!failure) failure = posix_spawnp(&child, arguments[0], NULL, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    return failure ? -failure : child;
}

int clinux_wait_child(pid_t child) {
    int status = 0;
    if (RETRY(waitpid(child, &status, 0)) < 0) return -errno;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int clinux_process_open(pid_t process) { return result((int)syscall(SYS_pidfd_open, process, 0)); }

int clinux_process_signal(int process_descriptor, int signal) {
    return result((int)syscall(SYS_pidfd_send_signal, process_descriptor, signal, NULL, 0));
}

int clinux_pipe(int ends[2]) { return result(pipe2(ends, O_CLOEXEC)); }

int clinux_wait_readable(int descriptor, int milliseconds) {
    struct pollfd entry = {.fd = descriptor, .events = POLLIN};
    return result(RETRY(poll(&entry, 1, milliseconds)));
}

int clinux_lock_waiting(int descriptor) { return result(RETRY(flock(descriptor, LOCK_EX))); }

static int address_of(int folder, const char *name, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int length = snprintf(address->sun_path, sizeof address->sun_path, "/proc/thread-self/fd/%d/%s", folder, name);
    return length < 0 || (size_t)length >= sizeof address->sun_path ? -ENAMETOOLONG : 0;
}

int clinux_socket_listen(int folder, const char *name) {
    struct sockaddr_un address;
    int failure = address_of(folder, name, &address);
    if (failure) return failure;
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) return -errno;
    // Nobody but the owner may ever connect, not even between bind and chmod: the socket's own mode is what bind gives it.
    fchmod(descriptor, 0600);
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0 || chmod(address.sun_path, 0600) < 0
        || listen(descriptor, 64) < 0) {
        failure = -errno;
        close(descriptor);
        return failure;
    }
    return descriptor;
}

int clinux_socket_connect(int folder, const char *name) {
    struct sockaddr_un address;
    int failure = address_of(folder, name, &address);
    if (failure) return failure;
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -errno;
    if (RETRY(connect(descriptor, (struct sockaddr *)&address, sizeof address)) < 0) {
        failure = -errno;
        close(descriptor);
        return failure;
    }
    return descriptor;
}

int clinux_socket_accept(int listener) {
    return result(RETRY(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)));
}

int clinux_socket_peer(int socket, pid_t *process, uid_t *user) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) return -errno;
    *process = peer.pid;
    *user = peer.uid;
    return 0;
}

int64_t clinux_socket_send(int socket, const void *bytes, size_t length, int descriptor) {
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = length};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
    }
    ssize_t sent = RETRY(sendmsg(socket, &message, MSG_NOSIGNAL));
    return sent < 0 ? -errno : sent;
}

int64_t clinux_socket_receive(int socket, void *bytes, size_t length, int *descriptor) {
    struct iovec part = {.iov_base = bytes, .iov_len = length};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    *descriptor = -1;
    ssize_t received = RETRY(recvmsg(socket, &message, MSG_CMSG_CLOEXEC));
    if (received < 0) return -errno;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t given = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t index = 0; index < given; index++) {
            int received_descriptor;
            memcpy(&received_descriptor, CMSG_DATA(header) + index * sizeof(int), sizeof(int));
            // The room for one has, for alignment, room for two: what was not asked for must not stay open.
            if (*descriptor < 0) *descriptor = received_descriptor; else close(received_descriptor);
        }
    }
    return received;
}

int clinux_event_make(void) { return result(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

void clinux_event_raise(int event) {
    // Fails only when the counter is full, and then it is raised already.
    eventfd_write(event, 1);
}

void clinux_event_clear(int event) {
    eventfd_t value;
    eventfd_read(event, &value);
}

int clinux_watch_folder(const char *path) {
    int descriptor = inotify_init1(IN_CLOEXEC);
    if (descriptor < 0) return -errno;
    if (inotify_add_watch(descriptor, path, IN_CLOSE_WRITE | IN_CREATE | IN_MOVE | IN_DELETE | IN_ONLYDIR) < 0) {
        int failure = -errno;
        close(descriptor);
        return failure;
    }
    return descriptor;
}

int clinux_terminal_columns(int descriptor) {
    struct winsize size;
    if (ioctl(descriptor, TIOCGWINSZ, &size) < 0) return -errno;
    return size.ws_col > 0 ? size.ws_col : 80;
}

int clinux_has_network(void) {
    struct ifaddrs *first;
    if (getifaddrs(&first) < 0) return 0;
    int found = 0;
    for (struct ifaddrs *entry = first; entry && !found; entry = entry->ifa_next) {
        if (!entry->ifa_addr || (entry->ifa_flags & IFF_LOOPBACK) || !(entry->ifa_flags & IFF_UP)) continue;
        found = entry->ifa_addr->sa_family == AF_INET || entry->ifa_addr->sa_family == AF_INET6;
    }
    freeifaddrs(first);
    return found;
}

int clinux_detach_mount(const char *path) { return result(umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW)); }
