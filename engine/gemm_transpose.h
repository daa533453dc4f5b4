// Sixteen rows of a matrix as sixteen columns in AVX-512 registers.
#ifndef CAPER_GEMM_TRANSPOSE_H
#define CAPER_GEMM_TRANSPOSE_H

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq")))
#define AVX512_INLINE static inline __attribute__((always_inline)) AVX512

static inline int avx512_supported(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq");
}

// Two times eight floats, the first `n` of each where the masks say so.
AVX512_INLINE __m512 pair8(const float *low, __mmask8 mlow, const float *high, __mmask8 mhigh) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_maskz_loadu_ps(mlow, low)), _mm256_maskz_loadu_ps(mhigh, high), 1);
}

// Lane j of r[p] becomes x[j*line + p] for j < rows and p < steps, both at most 16,
// and zero elsewhere. With constant arguments the masks vanish.
AVX512_INLINE void transpose16(__m512 r[16], const float *x, long line, int rows, int steps) {
    const __mmask8 first = steps >= 8 ? 0xff : (1 << steps) - 1;
    const __mmask8 second = steps >= 16 ? 0xff : steps > 8 ? (1 << (steps - 8)) - 1 : 0;
    // t[j] holds steps 0-7 of rows j and j+4, or j+4 and j+8 for j >= 4; t[j+8] steps
    // 8-15. The loads put the halves together, which leaves the one port that moves
    // data across lanes to the steps below.
    __m512 t[16];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        int low = j < 4 ? j : j + 4, high = low + 4;
        __mmask8 in_low = low < rows ? 0xff : 0, in_high = high < rows ? 0xff : 0;
        const float *a = x + low * line, *b = x + high * line;
        t[j] = pair8(a, first & in_low, b, first & in_high);
        t[j + 8] = pair8(a + 8, second & in_low, b + 8, second & in_high);
    }
#pragma GCC unroll 4
    for (int p = 0; p < 16; p += 4) {
        // u[j]: steps p .. p+3 of rows j, j+4, j+8, j+12, a quarter each.
        __m512 u[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            __m512 low = t[p / 8 * 8 + j], high = t[p / 8 * 8 + j + 4];
            u[j] = p % 8 == 0 ? _mm512_shuffle_f32x4(low, high, 0x88) : _mm512_shuffle_f32x4(low, high, 0xdd);
        }
        __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(u[0], u[1])), b = _mm512_castps_pd(_mm512_unpackhi_ps(u[0], u[1]));
        __m512d c = _mm512_castps_pd(_mm512_unpacklo_ps(u[2], u[3])), d = _mm512_castps_pd(_mm512_unpackhi_ps(u[2], u[3]));
        r[p] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        r[p + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        r[p + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        r[p + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
}

#endif
