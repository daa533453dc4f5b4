#ifndef CAPER_CAUSALCONV_H
#define CAPER_CAUSALCONV_H

#include "cpu.h"

enum { MAX_TAPS = 8 };

// The arguments of both directions. ld* are row strides; dx and dw may be null.
struct causalconv {
    int channels, taps, segments;
    const int32_t *start, *len, *parent;
    const float *x, *w, *dy;
    float *y, *dx, *dw;
    long ldx, ldw, lddy, ldy, lddx, lddw;
};

void causalconv_forward(struct cpu *, struct causalconv);
void causalconv_backward(struct cpu *, struct causalconv);

#endif
