#ifndef CAPER_DELTAGATE_H
#define CAPER_DELTAGATE_H

#include "cpu.h"

enum { BLOCK_ROWS = 128 };

// The arguments of all directions; gradients of inputs may be null. partial holds
// 2 * heads floats for every BLOCK_ROWS rows.
struct deltagate {
    int rows, heads;
    struct matrix a, b, a_log, dt_bias, g, beta;
    struct matrix dg, dbeta, da, db, da_log, ddt_bias;
    float *partial;
};

void deltagate_forward(struct cpu *, struct deltagate);
void deltagate_decay_backward(struct cpu *, struct deltagate);
void deltagate_beta_backward(struct cpu *, struct deltagate);

#endif
