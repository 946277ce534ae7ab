#include "CDigests.h"

#include <string.h>

// The polynomial, its bits reversed as all of this is.
#define POLYNOMIAL 0x82f63b78u

static uint32_t one_by_one(uint32_t crc, const uint8_t *bytes, size_t length) {
    for (size_t index = 0; index < length; index++) {
        crc ^= bytes[index];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
    }
    return crc;
}

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

// In three streams, since each instruction waits for the one before it in its own.
#define STREAM 4096
_Static_assert(STREAM == 1 << 12, "`prepare` doubles as often");

// What `STREAM` bytes of zero make of a sum, byte by byte of that sum; computed before `main`.
static uint32_t shifted[4][256];
static int has_instruction;

__attribute__((constructor)) static void prepare(void) {
    unsigned a, b, c, d;
    has_instruction = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2);
    // What one byte of zero makes of each bit, and from that, what twice as many do.
    uint32_t of_bit[32];
    for (int bit = 0; bit < 32; bit++) of_bit[bit] = one_by_one(1u << bit, (const uint8_t[]){0}, 1);
    for (int doubling = 0; doubling < 12; doubling++) {
        uint32_t twice[32] = {0};
        for (int bit = 0; bit < 32; bit++) {
            for (int other = 0; other < 32; other++) {
                if (of_bit[bit] >> other & 1) twice[bit] ^= of_bit[other];
            }
        }
        memcpy(of_bit, twice, sizeof of_bit);
    }
    for (int byte = 0; byte < 4; byte++) {
        for (int value = 0; value < 256; value++) {
            uint32_t sum = 0;
            for (int bit = 0; bit < 8; bit++) {
                if (value >> bit & 1) sum ^= of_bit[8 * byte + bit];
            }
            shifted[byte][value] = sum;
        }
    }
}

static uint32_t shift(uint32_t crc) {
    return shifted[0][crc & 0xff] ^ shifted[1][crc >> 8 & 0xff] ^ shifted[2][crc >> 16 & 0xff] ^ shifted[3][crc >> 24];
}

static uint64_t word(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *bytes, size_t length) {
    for (; length >= 3 * STREAM; bytes += 3 * STREAM, length -= 3 * STREAM) {
        uint64_t first = crc, second = 0, third = 0;
        for (size_t at = 0; at < STREAM; at += 8) {
            first = _mm_crc32_u64(first, word(bytes + at));
            second = _mm_crc32_u64(second, word(bytes + STREAM + at));
            third = _mm_crc32_u64(third, word(bytes + 2 * STREAM + at));
        }
        crc = shift(shift((uint32_t)first) ^ (uint32_t)second) ^ (uint32_t)third;
    }
    uint64_t wide = crc;
    for (; length >= 8; bytes += 8, length -= 8) wide = _mm_crc32_u64(wide, word(bytes));
    crc = (uint32_t)wide;
    for (; length > 0; bytes++, length--) crc = _mm_crc32_u8(crc, *bytes);
    return crc;
}

uint32_t cdigests_crc32c(uint32_t before, const void *bytes, size_t length) {
    return ~(has_instruction ? by_instruction(~before, bytes, length) : one_by_one(~before, bytes, length));
}

#elif defined(__ARM_FEATURE_CRC32)

#include <arm_acle.h>

uint32_t cdigests_crc32c(uint32_t before, const void *bytes, size_t length) {
    const uint8_t *next = bytes;
    uint32_t crc = ~before;
    for (; length >= 8; next += 8, length -= 8) {
        uint64_t value;
        memcpy(&value, next, sizeof value);
        crc = __crc32cd(crc, value);
    }
    for (; length > 0; next++, length--) crc = __crc32cb(crc, *next);
    return ~crc;
}

#else

// Eight bytes at a time: what the table says of each, after as many zeros as follow it.
static uint32_t table[8][256];

__attribute__((constructor)) static void prepare(void) {
    for (int value = 0; value < 256; value++) {
        uint8_t byte = (uint8_t)value;
        table[0][value] = one_by_one(0, &byte, 1);
    }
    for (int zeros = 1; zeros < 8; zeros++) {
        for (int value = 0; value < 256; value++) {
            uint32_t before = table[zeros - 1][value];
            table[zeros][value] = before >> 8 ^ table[0][before & 0xff];
        }
    }
}

uint32_t cdigests_crc32c(uint32_t before, const void *bytes, size_t length) {
    const uint8_t *next = bytes;
    uint32_t crc = ~before;
    for (; length >= 8; next += 8, length -= 8) {
        uint32_t sum = 0;
        for (int index = 0; index < 8; index++) {
            uint8_t byte = (uint8_t)(next[index] ^ (index < 4 ? crc >> 8 * index & 0xff : 0));
            sum ^= table[7 - index][byte];
        }
        crc = sum;
    }
    for (; length > 0; next++, length--) crc = crc >> 8 ^ table[0][(crc ^ *next) & 0xff];
    return ~crc;
}

#endif
