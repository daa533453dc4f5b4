// Sums of rows, the inner loops of products with triangular matrices. They are plain
// loops: the compiler keeps a row's factors in registers and takes as many columns
// at a time as the instruction set has.
#ifndef CAPER_ROWS_H
#define CAPER_ROWS_H

#include "cpu.h"

// y += f[0] x[0] + .. + f[n-1] x[n-1] for rows x of cols elements, in that order.
// y must not overlap the rows.
static inline __attribute__((always_inline)) void add_rows(float *restrict y, const float *restrict f, int n,
                                                           const float *restrict x, long stride, int cols) {
    int j = 0;
    for (; j + 4 <= n; j += 4) { // four rows for each time that y is loaded and stored
        const float *x0 = x + j * stride, *x1 = x0 + stride, *x2 = x1 + stride, *x3 = x2 + stride;
        float f0 = f[j], f1 = f[j + 1], f2 = f[j + 2], f3 = f[j + 3];
        for (int c = 0; c < cols; c++) {
            float s = y[c];
            s += f0 * x0[c];
            s += f1 * x1[c];
            s += f2 * x2[c];
            s += f3 * x3[c];
            y[c] = s;
        }
    }
    for (; j < n; j++)
        for (int c = 0; c < cols; c++) y[c] += f[j] * x[j * stride + c];
}

// y = f x over n elements; y may be x.
static inline __attribute__((always_inline)) void scale_row(float *y, float f, const float *x, int n) {
    for (int c = 0; c < n; c++) y[c] = f * x[c];
}

// y += x over n elements.
static inline __attribute__((always_inline)) void add_row(float *restrict y, const float *restrict x, int n) {
    for (int c = 0; c < n; c++) y[c] += x[c];
}

#endif
