// libfuse's low-level API. _GNU_SOURCE must not be defined here: it clashes with Swift's Glibc module.
#ifndef CFUSE3_SHIM_H
#define CFUSE3_SHIM_H
#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>
#include <fuse3/fuse_opt.h>
#endif
