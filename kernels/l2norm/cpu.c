#include "l2norm.h"

#include "vector.h"

CPU_CLONES
static void forward_rows(void *arg, int task) {
    const struct l2norm *a = arg;
    const int n = a->dim;
    for (int r = task * ROW_BLOCK; r < row_end(a->rows, task); r++)
        for (int h = 0; h < a->heads; h++) {
            const float *x = a->x.data + r * a->x.stride + h * n;
            float *y = a->y.data + r * a->y.stride + h * n;
            float inverse = 1 / sqrtf(dot(x, x, n) + a->eps);
            for (int j = 0; j < n; j += LANES) store(y + j, n - j, inverse * load(x + j, n - j));
        }
}

CPU_CLONES
static void backward_rows(void *arg, int task) {
    const struct l2norm *a = arg;
    const int n = a->dim;
    for (int r = task * ROW_BLOCK; r < row_end(a->rows, task); r++)
        for (int h = 0; h < a->heads; h++) {
            const float *x = a->x.data + r * a->x.stride + h * n;
            const float *dy = a->dy.data + r * a->dy.stride + h * n;
            float *dx = a->dx.data + r * a->dx.stride + h * n;
            float inverse = 1 / sqrtf(dot(x, x, n) + a->eps);
            float along = inverse * inverse * dot(x, dy, n);
            for (int j = 0; j < n; j += LANES)
                add_to(dx + j, n - j, inverse * (load(dy + j, n - j) - along * load(x + j, n - j)));
        }
}

void l2norm_forward(struct cpu *cpu, struct l2norm a) {
    parallel_for(cpu, forward_rows, &a, row_blocks(a.rows));
}

void l2norm_backward(struct cpu *cpu, struct l2norm a) {
    parallel_for(cpu, backward_rows, &a, row_blocks(a.rows));
}
