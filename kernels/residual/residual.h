#ifndef CAPER_RESIDUAL_H
#define CAPER_RESIDUAL_H

#include "cpu.h"

// The arguments of both directions: all matrices are rows x cols.
struct residual {
    int rows, cols;
    struct matrix x, y, sum, dsum, dx, dy;
};

void residual_forward(struct cpu *, struct residual);
void residual_backward(struct cpu *, struct residual);

#endif
