// libfuse's low-level API. _GNU_SOURCE must not be defined here: it clashes with Swift's Glibc module.
#ifndef CFUSE3_SHIM_H
#define CFUSE3_SHIM_H
#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>
#include <fuse3/fuse_opt.h>

// A macro since libfuse 3.17, and Swift sees functions only.
static inline struct fuse_session *fuse_new_session(
    struct fuse_args *arguments, const struct fuse_lowlevel_ops *operations, void *context
) {
    return fuse_session_new(arguments, operations, sizeof(*operations), context);
}
#endif
