#ifndef CAPER_GATEDNORM_H
#define CAPER_GATEDNORM_H

#include "cpu.h"

// The arguments of both directions: heads of dim elements side by side in each row,
// one weight [dim] for all. partial is room for row_blocks(rows) x dim; dx, dz and
// dw may be null.
struct gatednorm {
    int rows, heads, dim;
    float eps;
    const float *w;
    struct matrix x, z, y, dy, dx, dz;
    float *dw, *partial;
};

void gatednorm_forward(struct cpu *, struct gatednorm);
void gatednorm_backward(struct cpu *, struct gatednorm);

#endif
