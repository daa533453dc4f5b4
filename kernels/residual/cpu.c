#include "residual.h"

#include "vector.h"

CPU_CLONES
static void forward_rows(void *arg, int task) {
    const struct residual *a = arg;
    for (int r = task * ROW_BLOCK; r < row_end(a->rows, task); r++) {
        const float *x = a->x.data + r * a->x.stride, *y = a->y.data + r * a->y.stride;
        float *sum = a->sum.data + r * a->sum.stride;
        for (int j = 0; j < a->cols; j++) sum[j] = x[j] + y[j];
    }
}

CPU_CLONES
static void backward_rows(void *arg, int task) {
    const struct residual *a = arg;
    for (int r = task * ROW_BLOCK; r < row_end(a->rows, task); r++) {
        const float *d = a->dsum.data + r * a->dsum.stride;
        float *dx = a->dx.data + r * a->dx.stride, *dy = a->dy.data + r * a->dy.stride;
        for (int j = 0; j < a->cols; j += LANES) {
            int left = a->cols - j;
            if (a->dx.data) give(a->dx, dx + j, left, load(d + j, left));
            if (a->dy.data) give(a->dy, dy + j, left, load(d + j, left));
        }
    }
}

void residual_forward(struct cpu *cpu, struct residual a) {
    parallel_for(cpu, forward_rows, &a, row_blocks(a.rows));
}

void residual_backward(struct cpu *cpu, struct residual a) {
    parallel_for(cpu, backward_rows, &a, row_blocks(a.rows));
}
