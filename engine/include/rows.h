// Sums of rows, the inner loops of products with triangular matrices.
#ifndef CAPER_ROWS_H
#define CAPER_ROWS_H

#include "vector.h"

// y += f[0] x[0] + .. + f[n-1] x[n-1] for rows x of cols elements, in that order.
VECTOR_INLINE void add_rows(float *y, const float *f, int n, const float *x, long stride, int cols) {
    enum { STRIP = 4 * LANES }; // four sums at a time hide the latency of an addition
    int c = 0;
    for (; c + STRIP <= cols; c += STRIP) {
        vec s0 = load(y + c, LANES), s1 = load(y + c + LANES, LANES);
        vec s2 = load(y + c + 2 * LANES, LANES), s3 = load(y + c + 3 * LANES, LANES);
        for (int j = 0; j < n; j++) {
            const float *xj = x + j * stride + c;
            vec fj = splat(f[j]);
            s0 += fj * load(xj, LANES);
            s1 += fj * load(xj + LANES, LANES);
            s2 += fj * load(xj + 2 * LANES, LANES);
            s3 += fj * load(xj + 3 * LANES, LANES);
        }
        store(y + c, LANES, s0);
        store(y + c + LANES, LANES, s1);
        store(y + c + 2 * LANES, LANES, s2);
        store(y + c + 3 * LANES, LANES, s3);
    }
    for (; c < cols; c += LANES) {
        vec s = load(y + c, cols - c);
        for (int j = 0; j < n; j++) s += splat(f[j]) * load(x + j * stride + c, cols - c);
        store(y + c, cols - c, s);
    }
}

// y[j] += f[j] x for the n rows y[j] of cols elements.
VECTOR_INLINE void add_to_rows(float *y, long stride, const float *f, int n, const float *x, int cols) {
    for (int j = 0; j < n; j++)
        for (int c = 0; c < cols; c += LANES) add_to(y + j * stride + c, cols - c, splat(f[j]) * load(x + c, cols - c));
}

#endif
