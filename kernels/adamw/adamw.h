#ifndef CAPER_ADAMW_H
#define CAPER_ADAMW_H

#include "cpu.h"

// One step of n elements, with the numbers of spec.go. rest1 = 1 - beta1 and
// rest2 = 1 - beta2, which float32 holds better than beta itself: the means move by
// rest (g - m).
struct adamw {
    float *p, *m, *v;
    const float *g;
    long n;
    float rest1, rest2, eps, scale, step, correct, decay;
};

void adamw_step(struct cpu *, struct adamw);

#endif
