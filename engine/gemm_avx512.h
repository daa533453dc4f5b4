// How the AVX-512 kernel of gemm_float32.c reads a B that is stored transposed, as
// weights are.
#include "gemm_transpose.h"

// Panels of 32 columns each: panel[p*32 + j] = x[j*line + p], and zero where there is
// no row j.
AVX512 static void transpose_avx512(float *panel, const float *x, long line, int rows, int steps) {
    for (; rows > 0; rows -= 32, panel += 32L * steps, x += 32 * line)
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
                    sum[i] = _mm512_fmadd_ps(_mm512_set1_ps(a[i * PITCH + p + s]), column[s], sum[i]);
        }
    for (; p < k; p += 16) {
        __m512 column[16];
        const int steps = k - p < 16 ? k - p : 16;
        transpose16(column, b + p, ldb, cols, steps);
        for (int s = 0; s < steps; s++)
#pragma GCC unroll 14
            for (int i = 0; i < rows; i++)
                sum[i] = _mm512_fmadd_ps(_mm512_set1_ps(a[i * PITCH + p + s]), column[s], sum[i]);
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

