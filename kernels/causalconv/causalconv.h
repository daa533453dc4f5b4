#ifndef CAPER_CAUSALCONV_H
#define CAPER_CAUSALCONV_H

#include "cpu.h"

enum { MAX_TAPS = 8 };

// The arguments of both directions; dx and dw may be null.
struct causalconv {
    int rows, channels, taps;
    const int32_t *segment; // of each row
    const int32_t *start, *len, *parent;
    struct matrix x, w, y, dy, dx, dw;
};

void causalconv_forward(struct cpu *, struct causalconv);
void causalconv_backward(struct cpu *, struct causalconv);

#endif
