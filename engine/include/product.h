// Products of small matrices that lie in the first two levels of cache, for use inside
// a task. gemm_serial of cpu.h copies both factors into panels first, which pays from
// a few hundred rows on; here they are read where they are. B must be stored row by
// row; `transpose` makes it so.
#ifndef CAPER_PRODUCT_H
#define CAPER_PRODUCT_H

#include "vector.h"

// A factor whose element (i, p) stands at data[i*row + p*step]. A matrix stored row by
// row has step 1; its transpose has row 1.
struct factor {
    const float *data;
    long row, step;
};

VECTOR_INLINE struct factor plain(const float *data, long stride) { return (struct factor){data, stride, 1}; }
VECTOR_INLINE struct factor transposed(const float *data, long stride) { return (struct factor){data, 1, stride}; }

// A tile of `rows` x `vectors` vectors of C; both are constants after inlining. Each
// element is the sum of its products in order, whatever the tile's size.
VECTOR_INLINE void product_tile(const int rows, const int vectors, int k, struct factor a, const float *b, long ldb,
                                float *c, long ldc, int cols, int add) {
    vec total[8][2];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            total[i][j] = add ? load(c + i * ldc + j * LANES, cols - j * LANES) : (vec){0};
    for (int p = 0; p < k; p++, b += ldb, a.data += a.step) {
        vec line[2];
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) line[j] = load(b + j * LANES, cols - j * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++) total[i][j] += a.data[i * a.row] * line[j];
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++) store(c + i * ldc + j * LANES, cols - j * LANES, total[i][j]);
}

// Columns [0, cols) of C, one or two vectors wide.
VECTOR_INLINE void product_strip(const int vectors, int m, int k, struct factor a, const float *b, long ldb, float *c,
                                 long ldc, int cols, int add) {
    const int whole = cols == vectors * LANES ? vectors * LANES : 0; // lets full tiles drop the tests for the edge
#define TILE_OF(rows, width) product_tile(rows, vectors, k, a, b, ldb, c, ldc, width, add)
    for (; m >= 8; m -= 8, a.data += 8 * a.row, c += 8 * ldc)
        if (whole) TILE_OF(8, vectors * LANES);
        else TILE_OF(8, cols);
    for (; m >= 4; m -= 4, a.data += 4 * a.row, c += 4 * ldc) TILE_OF(4, cols);
    for (; m > 0; m--, a.data += a.row, c += ldc) TILE_OF(1, cols);
#undef TILE_OF
}

// C = A B, or C += A B where add is set: C is m x n, A m x k and B k x n, stored row by
// row. C must not overlap A or B.
CPU_CLONES
static void product(int m, int n, int k, struct factor a, const float *b, long ldb, float *c, long ldc, int add) {
    int j = 0;
    for (; n - j >= 2 * LANES; j += 2 * LANES) product_strip(2, m, k, a, b + j, ldb, c + j, ldc, 2 * LANES, add);
    for (; n - j > 0; j += LANES) product_strip(1, m, k, a, b + j, ldb, c + j, ldc, n - j < LANES ? n - j : LANES, add);
}

// to[j*to_stride + i] = from[i*stride + j] for i < rows, j < cols.
CPU_CLONES
static void transpose(float *restrict to, long to_stride, const float *restrict from, long stride, int rows, int cols) {
    int i = 0;
    for (; i + LANES <= rows; i += LANES)
        for (int j = 0; j < cols; j++) {
            vec x;
            for (int l = 0; l < LANES; l++) x[l] = from[(i + l) * stride + j];
            store(to + j * to_stride + i, LANES, x);
        }
    for (; i < rows; i++)
        for (int j = 0; j < cols; j++) to[j * to_stride + i] = from[i * stride + j];
}

#endif
