#include "rmsnorm.h"

#include "vector.h"

CPU_CLONES
static void forward_rows(void *arg, int task) {
    const struct rmsnorm *a = arg;
    const int n = a->cols;
    for (int r = task * ROW_BLOCK; r < row_end(a->rows, task); r++) {
        const float *x = a->x.data + r * a->x.stride;
        float *y = a->y.data + r * a->y.stride;
        float inverse = 1 / sqrtf(dot(x, x, n) / n + a->eps);
        for (int j = 0; j < n; j += LANES)
            store(y + j, n - j, load(x + j, n - j) * inverse * (a->offset + load(a->w + j, n - j)));
    }
}

CPU_CLONES
static void backward_rows(void *arg, int task) {
    const struct rmsnorm *a = arg;
    const int n = a->cols;
    float *dw = a->dw ? a->partial + (long)task * n : 0;
    if (dw) memset(dw, 0, n * sizeof(float));
    for (int r = task * ROW_BLOCK; r < row_end(a->rows, task); r++) {
        const float *x = a->x.data + r * a->x.stride, *dy = a->dy.data + r * a->dy.stride;
        float inverse = 1 / sqrtf(dot(x, x, n) / n + a->eps);
        vec along = {0};
        for (int j = 0; j < n; j += LANES) {
            vec normal = load(x + j, n - j) * inverse, d = load(dy + j, n - j);
            along += d * (a->offset + load(a->w + j, n - j)) * normal;
            if (dw) add_to(dw + j, n - j, d * normal);
        }
        if (!a->dx.data) continue;
        float *dx = a->dx.data + r * a->dx.stride;
        float mean = sum(along) / n;
        for (int j = 0; j < n; j += LANES) {
            vec d = load(dy + j, n - j) * (a->offset + load(a->w + j, n - j));
            give(a->dx, dx + j, n - j, inverse * (d - load(x + j, n - j) * inverse * mean));
        }
    }
}

CPU_CLONES
static void add_weight_gradient(const struct rmsnorm *a) {
    add_blocks(a->dw, a->partial, row_blocks(a->rows), a->cols);
}

void rmsnorm_forward(struct cpu *cpu, struct rmsnorm a) {
    parallel_for(cpu, forward_rows, &a, row_blocks(a.rows));
}

void rmsnorm_backward(struct cpu *cpu, struct rmsnorm a) {
    parallel_for(cpu, backward_rows, &a, row_blocks(a.rows));
    if (a.dw) add_weight_gradient(&a);
}
