#include "swiglu.h"

#include "vector.h"

CPU_CLONES
static void forward_rows(void *arg, int task) {
    const struct swiglu *x = arg;
    for (int r = task * ROW_BLOCK; r < row_end(x->rows, task); r++) {
        const float *gate = x->gate.data + r * x->gate.stride, *up = x->up.data + r * x->up.stride;
        float *y = x->y.data + r * x->y.stride;
        for (int j = 0; j < x->cols; j += LANES) {
            int left = x->cols - j;
            store(y + j, left, silu(load(gate + j, left)) * load(up + j, left));
        }
    }
}

CPU_CLONES
static void backward_rows(void *arg, int task) {
    const struct swiglu *x = arg;
    for (int r = task * ROW_BLOCK; r < row_end(x->rows, task); r++) {
        const float *gate = x->gate.data + r * x->gate.stride, *up = x->up.data + r * x->up.stride;
        const float *dy = x->dy.data + r * x->dy.stride;
        float *dgate = x->dgate.data ? x->dgate.data + r * x->dgate.stride : 0;
        float *dup = x->dup.data ? x->dup.data + r * x->dup.stride : 0;
        for (int j = 0; j < x->cols; j += LANES) {
            int left = x->cols - j;
            vec g = load(gate + j, left), d = load(dy + j, left), s = sigmoid(g);
            if (dgate) give(x->dgate, dgate + j, left, d * load(up + j, left) * s * (1 + g * (1 - s)));
            if (dup) give(x->dup, dup + j, left, d * g * s);
        }
    }
}

void swiglu_forward(struct cpu *cpu, struct swiglu x) {
    parallel_for(cpu, forward_rows, &x, row_blocks(x.rows));
}

void swiglu_backward(struct cpu *cpu, struct swiglu x) {
    parallel_for(cpu, backward_rows, &x, row_blocks(x.rows));
}
