#include "cdigests_sha256_lanes.h"

#if defined(__x86_64__)

#include <cpuid.h>

// Sixteen messages at a time, without the instructions for SHA-256: a register of AVX-512 holds the same word of each message. Rotations
// are one instruction there, and so is any function of three bits. Measured on a Xeon of 2023 (Emerald Rapids), on one processor as on two
// at once: 0.32 s a GiB, and 0.60 s by two with the instructions for SHA-256.

#define WIDE __attribute__((target("avx512f,avx512bw,avx512vl")))
#define INLINE WIDE static inline __attribute__((always_inline))

// The function of three bits that `_mm512_ternarylogic_epi32` is to compute, by its own value for these.
#define X 0xf0
#define Y 0xcc
#define Z 0xaa

// A macro, since the instruction has the counts within it.
#define ROTATED(x, first, second, third) \
    _mm512_ternarylogic_epi32(_mm512_ror_epi32(x, first), _mm512_ror_epi32(x, second), third, X ^ Y ^ Z)

INLINE __m512i plus(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }

// Rows and columns of each quarter of four registers change places.
INLINE void transpose(__m512i x[4]) {
    __m512i a = _mm512_unpacklo_epi32(x[0], x[1]), b = _mm512_unpackhi_epi32(x[0], x[1]);
    __m512i c = _mm512_unpacklo_epi32(x[2], x[3]), d = _mm512_unpackhi_epi32(x[2], x[3]);
    x[0] = _mm512_unpacklo_epi64(a, c);
    x[1] = _mm512_unpackhi_epi64(a, c);
    x[2] = _mm512_unpacklo_epi64(b, d);
    x[3] = _mm512_unpackhi_epi64(b, d);
}

// Four words of each lane, from sixteen bytes of each: those of lane 4q + i are in quarter q, at i.
INLINE void gather(const uint8_t *const *from, size_t at, __m512i words[4]) {
    for (int i = 0; i < 4; i++) {
        __m512i row = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(from[i] + at)));
        row = _mm512_inserti32x4(row, _mm_loadu_si128((const __m128i *)(from[i + 4] + at)), 1);
        row = _mm512_inserti32x4(row, _mm_loadu_si128((const __m128i *)(from[i + 8] + at)), 2);
        words[i] = _mm512_inserti32x4(row, _mm_loadu_si128((const __m128i *)(from[i + 12] + at)), 3);
    }
    transpose(words);
}

// The other way.
INLINE void scatter(__m512i words[4], __m128i to[WIDE_LANES]) {
    transpose(words);
    for (int i = 0; i < 4; i++) {
        to[i] = _mm512_castsi512_si128(words[i]);
        to[i + 4] = _mm512_extracti32x4_epi32(words[i], 1);
        to[i + 8] = _mm512_extracti32x4_epi32(words[i], 2);
        to[i + 12] = _mm512_extracti32x4_epi32(words[i], 3);
    }
}

// The blocks that are `at` bytes from where the lanes are; `state` has words a to h.
INLINE void compress(__m512i state[8], const uint8_t *const *from, size_t at) {
    const __m512i big_endian = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL));
    __m512i v[8], words[16];
    for (int index = 0; index < 8; index++) v[index] = state[index];
    for (int index = 0; index < 16; index += 4) gather(from, at + 4 * (size_t)index, words + index);
    for (int index = 0; index < 16; index++) words[index] = _mm512_shuffle_epi8(words[index], big_endian);
    // Unrolled, so that all of both arrays is in registers, and none is moved to its neighbour after a round.
#pragma clang loop unroll(full)
    for (int round = 0; round < 64; round++) {
        __m512i *w = &words[round & 15];
        if (round >= 16) {
            __m512i early = words[(round + 1) & 15], late = words[(round + 14) & 15];
            __m512i sum = plus(ROTATED(early, 7, 18, _mm512_srli_epi32(early, 3)), ROTATED(late, 17, 19, _mm512_srli_epi32(late, 10)));
            *w = plus(plus(*w, words[(round + 9) & 15]), sum);
        }
        __m512i a = v[-round & 7], b = v[(1 - round) & 7], c = v[(2 - round) & 7], *d = &v[(3 - round) & 7];
        __m512i e = v[(4 - round) & 7], f = v[(5 - round) & 7], g = v[(6 - round) & 7], *h = &v[(7 - round) & 7];
        __m512i sum = plus(*h, plus(*w, _mm512_set1_epi32((int)constants[round])));
        sum = plus(sum, _mm512_ternarylogic_epi32(e, f, g, (X & Y) | (~X & Z & 0xff)));
        sum = plus(sum, ROTATED(e, 6, 11, _mm512_ror_epi32(e, 25)));
        __m512i other = _mm512_ternarylogic_epi32(a, b, c, (X & Y) | (X & Z) | (Y & Z));
        other = plus(other, ROTATED(a, 2, 13, _mm512_ror_epi32(a, 22)));
        *d = plus(*d, sum);
        *h = plus(sum, other);
    }
    for (int index = 0; index < 8; index++) state[index] = plus(state[index], v[index]);
}

WIDE void cdigests_sha256_wide(struct lane *const *lanes, int count, size_t blocks) {
    const uint8_t *from[WIDE_LANES], *abef[WIDE_LANES], *cdgh[WIDE_LANES];
    for (int index = 0; index < WIDE_LANES; index++) {
        // A place without a lane computes what the first does, for nobody.
        const struct lane *lane = lanes[index < count ? index : 0];
        from[index] = lane->next;
        abef[index] = (const uint8_t *)&lane->abef;
        cdgh[index] = (const uint8_t *)&lane->cdgh;
    }
    __m512i first[4], second[4];
    gather(abef, 0, first);
    gather(cdgh, 0, second);
    __m512i state[8] = {first[3], first[2], second[3], second[2], first[1], first[0], second[1], second[0]};
    for (size_t block = 0; block < blocks; block++) compress(state, from, BLOCK * block);
    first[0] = state[5], first[1] = state[4], first[2] = state[1], first[3] = state[0];
    second[0] = state[7], second[1] = state[6], second[2] = state[3], second[3] = state[2];
    __m128i results[2][WIDE_LANES];
    scatter(first, results[0]);
    scatter(second, results[1]);
    for (int index = 0; index < count; index++) {
        lanes[index]->abef = results[0][index];
        lanes[index]->cdgh = results[1][index];
        lanes[index]->next += BLOCK * blocks;
        lanes[index]->blocks -= blocks;
    }
}

static int has_wide;

// Asked once, before `main`: within a virtual machine each such question goes to its host.
__attribute__((constructor)) static void prepare(void) {
    unsigned a, b, c, d;
    // Others' instructions for SHA-256 are quicker than these, by what was measured of them: nobody has measured these there.
    if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_INTEL_ebx) return;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return;
    // That the system keeps all registers of AVX-512 when it changes threads: bits 1 and 2, and 5 to 7.
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0xe6) != 0xe6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
    has_wide = (b & bit_AVX512F) && (b & bit_AVX512BW) && (b & bit_AVX512VL);
}

int cdigests_has_sha256_wide(void) { return has_wide; }

#endif
