#ifndef CAPER_RMSNORM_H
#define CAPER_RMSNORM_H

#include "cpu.h"

// The arguments of both directions. The gain is offset + w. partial is room for
// row_blocks(rows) x cols; dx and dw may be null.
struct rmsnorm {
    int rows, cols;
    float eps, offset;
    const float *w;
    struct matrix x, y, dy, dx;
    float *dw, *partial;
};

void rmsnorm_forward(struct cpu *, struct rmsnorm);
void rmsnorm_backward(struct cpu *, struct rmsnorm);

#endif
