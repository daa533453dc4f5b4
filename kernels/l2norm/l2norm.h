#ifndef CAPER_L2NORM_H
#define CAPER_L2NORM_H

#include "cpu.h"

// The arguments of both directions: heads of dim elements side by side in each row.
struct l2norm {
    int rows, heads, dim;
    float eps;
    struct matrix x, y, dy, dx;
};

void l2norm_forward(struct cpu *, struct l2norm);
void l2norm_backward(struct cpu *, struct l2norm);

#endif
