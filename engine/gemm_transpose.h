// Sixteen rows of a matrix as sixteen columns in AVX-512 registers: how a product
// reads a B that is stored transposed, as weights are.
#ifndef CAPER_GEMM_TRANSPOSE_H
#define CAPER_GEMM_TRANSPOSE_H

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq")))
#define AVX512_INLINE static inline __attribute__((always_inline)) AVX512

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

// panel[p*32 + j] = x[j*line + p] for j < rows <= 32, p < steps; zero for other j.
AVX512 static void transpose_avx512(float *panel, const float *x, long line, int rows, int steps) {
    for (int p = 0; p < steps; p += 16)
        for (int half = 0; half < 2; half++) {
            __m512 r[16];
            const int left = rows - 16 * half, now = steps - p < 16 ? steps - p : 16;
            const float *from = x + (left > 0 ? 16 * half : 0) * line + p;
            if (left >= 16 && now == 16) {
                transpose16(r, from, line, 16, 16);
#pragma GCC unroll 16
                for (int i = 0; i < 16; i++) _mm512_store_ps(panel + (p + i) * 32 + 16 * half, r[i]);
            } else {
                transpose16(r, from, line, left, now);
                for (int i = 0; i < now; i++) _mm512_store_ps(panel + (p + i) * 32 + 16 * half, r[i]);
            }
        }
}

// A tile of `rows` rows and up to 16 columns straight from the rows of B, which is
// cheaper than packing B where few rows of A use it. a is a panel by rows.
AVX512_INLINE void few_rows(const int rows, int k, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add) {
    __m512 sum[14];
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) sum[i] = _mm512_setzero_ps();
    int p = 0;
    if (cols == 16)
        for (; p + 16 <= k; p += 16) {
            __m512 column[16];
#pragma GCC unroll 16
            for (int j = 0; j < 16; j++) _mm_prefetch((const char *)(b + (j + 16) * ldb + p), _MM_HINT_T0);
            transpose16(column, b + p, ldb, 16, 16);
#pragma GCC unroll 16
            for (int s = 0; s < 16; s++)
#pragma GCC unroll 14
                for (int i = 0; i < rows; i++)
                    sum[i] = _mm512_fmadd_ps(_mm512_set1_ps(a[i * STEPS_PITCH + p + s]), column[s], sum[i]);
        }
    for (; p < k; p += 16) {
        __m512 column[16];
        const int steps = k - p < 16 ? k - p : 16;
        transpose16(column, b + p, ldb, cols, steps);
        for (int s = 0; s < steps; s++)
#pragma GCC unroll 14
            for (int i = 0; i < rows; i++)
                sum[i] = _mm512_fmadd_ps(_mm512_set1_ps(a[i * STEPS_PITCH + p + s]), column[s], sum[i]);
    }
    const __mmask16 m = (1u << cols) - 1;
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        if (add) sum[i] = _mm512_add_ps(sum[i], _mm512_maskz_loadu_ps(m, c + i * ldc));
        _mm512_mask_storeu_ps(c + i * ldc, m, sum[i]);
    }
}

AVX512 static void few_avx512(int rows, int k, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add) {
#define CASE(n) case n: few_rows(n, k, a, b, ldb, c, ldc, cols, add); break;
    switch (rows) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14)
    }
#undef CASE
}

#endif
