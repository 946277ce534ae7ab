#ifndef CLINUX_THREADS_H
#define CLINUX_THREADS_H

// pthread_setname_np needs _GNU_SOURCE. Names the calling thread; at most 15 bytes.
void clinux_name_thread(const char *name);

#endif
