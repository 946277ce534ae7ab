// System calls and constants that Swift cannot import (variadic, macros, or only with _GNU_SOURCE), each with its reason.
// Every function returns what the call returns, or -errno: errno is read at once, never across Swift code.
#ifndef CLINUX_H
#define CLINUX_H
#include "clinux_files.h"
#include "clinux_fuse.h"
#include "clinux_passthrough.h"
#include "clinux_process.h"
#include "clinux_threads.h"
#endif
