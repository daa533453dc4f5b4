#ifndef CAPER_ROTARY_H
#define CAPER_ROTARY_H

#include "cpu.h"

enum { MAX_DIM = 1024 };

// The arguments of both directions. Head h is at column h*head_stride of x and dx,
// and h*dim of y and dy; the gain is offset + w. angles has, for each position,
// rotary_dims/2 cosines and as many sines. partial is room for
// row_blocks(rows) x dim; dx and dw may be null.
struct rotary {
    int rows, heads, dim, head_stride, rotary_dims;
    float eps, offset;
    const int32_t *positions;
    const float *angles, *w;
    struct matrix x, y, dy, dx;
    float *dw, *partial;
};

void rotary_forward(struct cpu *, struct rotary);
void rotary_backward(struct cpu *, struct rotary);

#endif
