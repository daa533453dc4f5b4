#ifndef CAPER_SWIGLU_H
#define CAPER_SWIGLU_H

#include "cpu.h"

// The arguments of both directions: all matrices are rows x cols.
struct swiglu {
    int rows, cols;
    struct matrix gate, up, y, dy, dgate, dup;
};

void swiglu_forward(struct cpu *, struct swiglu);
void swiglu_backward(struct cpu *, struct swiglu);

#endif
