// Vectors of sixteen floats for the operators' C code, in the compiler's vector
// extensions. A function that uses them should be marked CPU_CLONES: then each
// clone uses the registers of its instruction set, one of 512 bits or two of 256.
//
// A loop over n elements takes sixteen at a time, and the last few as well:
//
//     for (int j = 0; j < n; j += LANES)
//         store(y + j, n - j, silu(load(x + j, n - j)));
//
// Every function here is inlined, so how vectors are passed does not matter; compile
// with -Wno-psabi to hear no more of it.
//
// Every element of a row goes through the same instructions wherever the row ends,
// so results do not depend on how the compiler treats the rest of a loop.
#ifndef CAPER_VECTOR_H
#define CAPER_VECTOR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cpu.h"

enum { LANES = 16 };

typedef float vec __attribute__((vector_size(64)));
typedef int32_t vec_int __attribute__((vector_size(64)));  // also the mask a comparison gives: 0 or -1
typedef float vec_memory __attribute__((vector_size(64), aligned(4), may_alias));

#define VECTOR_INLINE static inline __attribute__((always_inline))

// The next sixteen floats, or the `left` that are left and zeros.
VECTOR_INLINE vec load(const float *p, int left) {
    if (left >= LANES) return *(const vec_memory *)p;
    vec x = {0};
    memcpy(&x, p, (size_t)left * sizeof(float));
    return x;
}

// Stores the first `left` lanes, at most sixteen.
VECTOR_INLINE void store(float *p, int left, vec x) {
    if (left >= LANES)
        *(vec_memory *)p = x;
    else
        memcpy(p, &x, (size_t)left * sizeof(float));
}

// *p += x on the first `left` lanes.
VECTOR_INLINE void add_to(float *p, int left, vec x) { store(p, left, load(p, left) + x); }

// The same for the first contribution to a gradient's elements, which may be fresh.
// Zero is added to it then, too: both ways give the same bits, also of -0.
VECTOR_INLINE void give(struct matrix gradient, float *p, int left, vec x) {
    vec before = {0};
    if (!gradient.fresh) before = load(p, left);
    store(p, left, before + x);
}

// x in every lane. gcc makes one instruction of the shuffle, and many of x - (vec){0}.
#if defined(__clang__)
VECTOR_INLINE vec splat(float x) { return x - (vec){0}; }
#else
VECTOR_INLINE vec splat(float x) { return __builtin_shuffle((vec){x}, (vec_int){0}); }
#endif

// a where the mask is set, else b.
VECTOR_INLINE vec choose(vec_int mask, vec a, vec b) { return (vec)((mask & (vec_int)a) | (~mask & (vec_int)b)); }

// The mask of the first n lanes; n may be below 0 or above sixteen.
VECTOR_INLINE vec_int lanes_below(int n) {
    return (vec_int){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < n;
}

VECTOR_INLINE vec maximum(vec a, vec b) { return choose(a > b, a, b); }

// The compiler takes no root of a whole vector, but on x86 of four lanes.
VECTOR_INLINE vec square_root(vec x) {
#if defined(__x86_64__)
    typedef float quad __attribute__((vector_size(16)));
    quad s[LANES / 4];
    memcpy(s, &x, sizeof s);
#pragma GCC unroll 4
    for (int i = 0; i < LANES / 4; i++) s[i] = __builtin_ia32_sqrtps(s[i]);
#else
    float s[LANES];
    memcpy(s, &x, sizeof s);
    for (int i = 0; i < LANES; i++) s[i] = sqrtf(s[i]);
#endif
    memcpy(&x, s, sizeof s);
    return x;
}

// Sum of the lanes, by halves.
VECTOR_INLINE float sum(vec x) {
    float s[LANES];
    memcpy(s, &x, sizeof s);
#pragma GCC unroll 4
    for (int h = LANES / 2; h > 0; h /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < h; i++) s[i] += s[i + h];
    return s[0];
}

// <a, b> over n elements.
VECTOR_INLINE float dot(const float *a, const float *b, int n) {
    vec s = {0};
    for (int j = 0; j < n; j += LANES) s += load(a + j, n - j) * load(b + j, n - j);
    return sum(s);
}

// y += the sum of `blocks` rows of n floats, in order: the last step of the gradient
// of a weight, after one sum for each block of rows.
VECTOR_INLINE void add_blocks(float *y, const float *partial, int blocks, int n) {
    for (int j = 0; j < n; j += LANES) {
        vec s = {0};
        for (int b = 0; b < blocks; b++) s += load(partial + (long)b * n + j, n - j);
        add_to(y + j, n - j, s);
    }
}

// e^x, relative error 1e-7; 0 where that is below 2^-126, infinity where it is
// above 2^127.4, NaN for NaN. x = n ln 2 + r with |r| <= ln 2 / 2, and e^r by the
// Taylor polynomial of degree 7, whose remainder is below 6e-9.
VECTOR_INLINE vec exp_vec(vec x) {
    const float round = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
    const float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
    vec shifted = x * 0x1.715476p0f + round;
    vec n = shifted - round;
    vec r = x - n * ln2_high - n * ln2_low;
    vec p = r * (1 / 5040.0f) + 1 / 720.0f;
    p = p * r + 1 / 120.0f;
    p = p * r + 1 / 24.0f;
    p = p * r + 1 / 6.0f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1;
    vec power = (vec)(((vec_int)shifted << 23) + (127 << 23));
    vec y = choose(x < -87.33f, splat(0), p * power);
    return choose(x > 88.3f, splat(INFINITY), y);
}

// 1 / (1 + e^-x).
VECTOR_INLINE vec sigmoid(vec x) { return 1 / (1 + exp_vec(-x)); }

// x sigmoid(x), and its derivative sigmoid(x) (1 + x (1 - sigmoid(x))).
VECTOR_INLINE vec silu(vec x) { return x * sigmoid(x); }
VECTOR_INLINE vec silu_slope(vec x) {
    vec s = sigmoid(x);
    return s * (1 + x * (1 - s));
}

// ln(1 + e^x) = max(x, 0) + ln(1 + y) with y = e^-|x|, and ln(1 + y) = 2 artanh(s)
// with s = y / (2 + y) <= 1/3, a series in s^2 whose remainder after seven terms is
// below 2e-8 of it. Small results keep their relative accuracy of 2e-7.
VECTOR_INLINE vec softplus(vec x) {
    vec y = exp_vec(choose(x > 0, -x, x));
    vec s = y / (2 + y), q = s * s;
    vec p = q * (1 / 13.0f) + 1 / 11.0f;
    p = p * q + 1 / 9.0f;
    p = p * q + 1 / 7.0f;
    p = p * q + 1 / 5.0f;
    p = p * q + 1 / 3.0f;
    p = p * q + 1;
    return maximum(x, splat(0)) + 2 * s * p;
}

#endif
