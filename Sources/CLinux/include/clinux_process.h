// Processes, sockets and terminals: what Glibc's module lacks (_GNU_SOURCE only, variadic, macros), or what is much shorter in C.
// Every function returns the call's result or -errno; a call interrupted by a signal is repeated unless said otherwise.
#ifndef CLINUX_PROCESS_H
#define CLINUX_PROCESS_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// For what runs long: memory that was freed serves again, up to some mebibytes a thread, instead of being given back to the system, which
// has to clear it each time. Called before there are threads.
void clinux_keep_freed_memory(void);

// Starts a process in a session of its own, in "/", with every signal as by default: standard input is /dev/null, output and errors go
// to `log`, `ready` becomes its descriptor 3, and it inherits no other descriptor. Returns its pid.
int clinux_spawn_background(const char *program, char *const arguments[], char *const environment[], int log, int ready);
// Starts a program, found in PATH, in the foreground with the caller's terminal. Returns its pid.
int clinux_spawn_foreground(char *const arguments[], char *const environment[]);
// Waits for a child: its exit code, or 128 + the signal that ended it.
int clinux_wait_child(pid_t child);
// pidfd_open and pidfd_send_signal have no wrapper in older C libraries.
int clinux_process_open(pid_t process);
int clinux_process_signal(int process_descriptor, int signal);
// pipe2 with O_CLOEXEC.
int clinux_pipe(int ends[2]);
// poll for reading of one descriptor: 1 ready or closed, 0 the time is over. A negative time waits for ever.
int clinux_wait_readable(int descriptor, int milliseconds);

// Takes the lock of the open file description for itself alone, waiting for it: flock, whose name is also a struct's.
int clinux_lock_waiting(int descriptor);

// Sockets in the filesystem. The folder is given as a descriptor and reached through /proc/thread-self/fd, since a socket's address has
// room for 107 bytes only and homes may be deeper.
int clinux_socket_listen(int folder, const char *name);
int clinux_socket_connect(int folder, const char *name);
// accept4, closed on exec and not blocking.
int clinux_socket_accept(int listener);
// SO_PEERCRED: who connected.
int clinux_socket_peer(int socket, pid_t *process, uid_t *user);
// Sends bytes, never raising SIGPIPE, and a descriptor with the first of them unless it is negative. May be short; returns the count.
int64_t clinux_socket_send(int socket, const void *bytes, size_t length, int descriptor);
// Receives bytes and at most one descriptor (-1 if none came), closed on exec.
int64_t clinux_socket_receive(int socket, void *bytes, size_t length, int *descriptor);

// An eventfd, not blocking, closed on exec; raise and clear it.
int clinux_event_make(void);
void clinux_event_raise(int event);
void clinux_event_clear(int event);

// An inotify descriptor that becomes readable when an entry of the folder is written, made, moved or removed; reading clears it.
int clinux_watch_folder(const char *path);

// The terminal's width in columns; -ENOTTY for anything else.
int clinux_terminal_columns(int descriptor);
// Whether another interface than loopback is up and has an address: 1 or 0.
int clinux_has_network(void);

// umount2 with MNT_DETACH.
int clinux_detach_mount(const char *path);
#endif
