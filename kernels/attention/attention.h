#ifndef CAPER_ATTENTION_H
#define CAPER_ATTENTION_H

#include "cpu.h"

// MAX_DIM bounds a head, MAX_GROUP the query heads of a key head: both size the
// tiles on a task's stack.
enum { MAX_DIM = 256, MAX_GROUP = 64 };

// The arguments of both directions. Gradients and the gate may be null.
struct attention {
    int rows, heads, kv_heads, dim, gate_stride, gate_offset, segments;
    const int32_t *start, *len, *parent, *pos, *segment, *position;
    struct matrix q, k, v, gate, y, lse, dy, dq, dk, dv, dgate;
    struct cpu *cpu;
};

void attention_forward(struct attention);
void attention_backward(struct attention);

#endif
