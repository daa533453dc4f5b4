#ifndef CAPER_DELTARULE_H
#define CAPER_DELTARULE_H

#include "cpu.h"

// CHUNK is how many tokens of a segment are taken at once; MAX_DIM bounds the sides
// of a state. Both size what a task keeps on its stack.
enum { CHUNK = 64, MAX_DIM = 256 };

// The arguments of both directions. Gradients of inputs may be null. residuals, shaped
// like v, carries what backward needs from forward (see chunk.h); it is null where there
// will be no backward. The trees of
// the forest are dealt out to `groups` groups; a task is a key head of a group, and
// has task_states states of key_dim x value_dim for each of its value heads.
struct deltarule {
    int key_heads, value_heads, key_dim, value_dim;
    int rows, segments, groups;
    const int32_t *start, *len, *parent;
    struct matrix q, k, v, g, beta, out, residuals, dout, dq, dk, dv, dg, dbeta;
    float *states;
    int path_states, task_states;
    struct cpu *cpu;
};

void deltarule_forward(struct deltarule);
void deltarule_backward(struct deltarule);

#endif
