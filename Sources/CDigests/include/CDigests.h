#pragma once

#include <stddef.h>
#include <stdint.h>

// What neither swift-crypto nor Swift itself gives: SHA-256 of two messages at a time, which the processor computes in little more than
// the time of one, and the processor's own CRC-32C.

#define CDIGESTS_SHA256_BYTES 32

// Whether this processor has instructions for SHA-256. Without them `cdigests_sha256` must not be called.
int cdigests_has_sha256(void);

// SHA-256 of each of `count` messages, into `digests`, one after the other.
void cdigests_sha256(const void *const *messages, const size_t *lengths, size_t count, uint8_t *digests);

// CRC-32C (Castagnoli) of more bytes, after those that gave `before`; of none it is 0.
uint32_t cdigests_crc32c(uint32_t before, const void *bytes, size_t length);
