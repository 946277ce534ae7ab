#include "CDigests.h"

#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

// Two messages at a time: each round of one waits for the round before it, and meanwhile the other's is computed. Measured on an EPYC of
// 2022: 0.60 s a GiB one by one, 0.31 s by two, no less by three.

#define BLOCK 64
#define FAST __attribute__((target("sha,sse4.1,ssse3")))

static const uint32_t constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

// A message on its way: its whole blocks, and then those that hold its end, the padding and its length.
struct lane {
    const uint8_t *next;
    size_t blocks;
    uint8_t end[2 * BLOCK];
    size_t end_blocks;
    uint8_t *digest;
    // In the order that the instructions want: words a, b, e, f and c, d, g, h, the first of each the highest.
    __m128i abef, cdgh;
};

// All blocks of `count` lanes, which is 1 or 2; inlined, so that it is known and the loops over lanes go away.
FAST static inline __attribute__((always_inline)) void compress(struct lane *const *lanes, int count, size_t blocks) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    __m128i abef[2], cdgh[2], words[2][4];
    for (int lane = 0; lane < count; lane++) {
        abef[lane] = lanes[lane]->abef;
        cdgh[lane] = lanes[lane]->cdgh;
    }
    for (size_t block = 0; block < blocks; block++) {
        __m128i abef_before[2], cdgh_before[2];
        for (int lane = 0; lane < count; lane++) {
            abef_before[lane] = abef[lane];
            cdgh_before[lane] = cdgh[lane];
        }
        // Four rounds at a time; the words of the last sixteen rounds are kept in four registers.
#pragma clang loop unroll(full)
        for (int step = 0; step < 16; step++) {
#pragma clang loop unroll(full)
            for (int lane = 0; lane < count; lane++) {
                __m128i *w = words[lane];
                if (step < 4) {
                    const __m128i *from = (const __m128i *)(lanes[lane]->next + BLOCK * block + 16 * step);
                    w[step] = _mm_shuffle_epi8(_mm_loadu_si128(from), big_endian);
                } else {
                    __m128i sum = _mm_sha256msg1_epu32(w[step & 3], w[(step + 1) & 3]);
                    sum = _mm_add_epi32(sum, _mm_alignr_epi8(w[(step + 3) & 3], w[(step + 2) & 3], 4));
                    w[step & 3] = _mm_sha256msg2_epu32(sum, w[(step + 3) & 3]);
                }
                __m128i sum = _mm_add_epi32(w[step & 3], _mm_load_si128((const __m128i *)(constants + 4 * step)));
                cdgh[lane] = _mm_sha256rnds2_epu32(cdgh[lane], abef[lane], sum);
                abef[lane] = _mm_sha256rnds2_epu32(abef[lane], cdgh[lane], _mm_shuffle_epi32(sum, 0x0e));
            }
        }
        for (int lane = 0; lane < count; lane++) {
            abef[lane] = _mm_add_epi32(abef[lane], abef_before[lane]);
            cdgh[lane] = _mm_add_epi32(cdgh[lane], cdgh_before[lane]);
        }
    }
    for (int lane = 0; lane < count; lane++) {
        lanes[lane]->abef = abef[lane];
        lanes[lane]->cdgh = cdgh[lane];
        lanes[lane]->next += BLOCK * blocks;
        lanes[lane]->blocks -= blocks;
    }
}

FAST static void compress_one(struct lane *const *lanes, size_t blocks) { compress(lanes, 1, blocks); }
FAST static void compress_two(struct lane *const *lanes, size_t blocks) { compress(lanes, 2, blocks); }

FAST static void begin(struct lane *lane, const uint8_t *message, size_t length, uint8_t *digest) {
    size_t rest = length % BLOCK;
    lane->next = message;
    lane->blocks = length / BLOCK;
    lane->end_blocks = rest < BLOCK - 8 ? 1 : 2;
    memset(lane->end, 0, sizeof lane->end);
    if (rest > 0) memcpy(lane->end, message + length - rest, rest);
    lane->end[rest] = 0x80;
    uint64_t bits = __builtin_bswap64((uint64_t)length * 8);
    memcpy(lane->end + BLOCK * lane->end_blocks - 8, &bits, 8);
    lane->digest = digest;
    lane->abef = _mm_set_epi32(0x6a09e667, (int)0xbb67ae85, 0x510e527f, (int)0x9b05688c);
    lane->cdgh = _mm_set_epi32(0x3c6ef372, (int)0xa54ff53a, 0x1f83d9ab, 0x5be0cd19);
}

static void put(uint8_t *at, uint32_t word) {
    word = __builtin_bswap32(word);
    memcpy(at, &word, 4);
}

FAST static void finish(const struct lane *lane) {
    uint32_t abef[4], cdgh[4];
    _mm_storeu_si128((__m128i *)abef, lane->abef);
    _mm_storeu_si128((__m128i *)cdgh, lane->cdgh);
    const uint32_t words[8] = {abef[3], abef[2], cdgh[3], cdgh[2], abef[1], abef[0], cdgh[1], cdgh[0]};
    for (int index = 0; index < 8; index++) put(lane->digest + 4 * index, words[index]);
}

// Whether the lane has blocks still to be computed; its end comes after its whole blocks.
static int goes_on(struct lane *lane) {
    if (lane->blocks == 0) {
        lane->next = lane->end;
        lane->blocks = lane->end_blocks;
        lane->end_blocks = 0;
    }
    return lane->blocks > 0;
}

void cdigests_sha256(const void *const *messages, const size_t *lengths, size_t count, uint8_t *digests) {
    struct lane room[2];
    struct lane *lanes[2] = {&room[0], &room[1]};
    int busy = 0;
    size_t next = 0;
    for (;;) {
        for (int index = 0; index < busy;) {
            if (goes_on(lanes[index])) {
                index++;
                continue;
            }
            finish(lanes[index]);
            struct lane *ended = lanes[index];
            lanes[index] = lanes[--busy];
            lanes[busy] = ended;
        }
        while (busy < 2 && next < count) {
            begin(lanes[busy], messages[next], lengths[next], digests + CDIGESTS_SHA256_BYTES * next);
            (void)goes_on(lanes[busy]);
            busy++;
            next++;
        }
        if (busy == 0) return;
        if (busy == 1) {
            compress_one(lanes, lanes[0]->blocks);
        } else {
            compress_two(lanes, lanes[0]->blocks < lanes[1]->blocks ? lanes[0]->blocks : lanes[1]->blocks);
        }
    }
}

int cdigests_has_sha256(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA) ? 1 : 0;
}

#else

// Elsewhere swift-crypto is used, which has them one by one.
int cdigests_has_sha256(void) { return 0; }

void cdigests_sha256(const void *const *messages, const size_t *lengths, size_t count, uint8_t *digests) {
    (void)messages, (void)lengths, (void)count, (void)digests;
    __builtin_trap();
}

#endif
