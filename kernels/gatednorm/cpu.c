#include "gatednorm.h"

#include "vector.h"

VECTOR_INLINE void forward_head(const struct gatednorm *a, int r, int at) {
    const int n = a->dim;
    const float *x = a->x.data + r * a->x.stride + at, *z = a->z.data + r * a->z.stride + at;
    float *y = a->y.data + r * a->y.stride + at;
    float inverse = 1 / sqrtf(dot(x, x, n) / n + a->eps);
    for (int j = 0; j < n; j += LANES) {
        int left = n - j;
        store(y + j, left, inverse * load(x + j, left) * load(a->w + j, left) * silu(load(z + j, left)));
    }
}

// u = dy silu(z) is the gradient of the normalised and scaled head; see spec.go.
VECTOR_INLINE void backward_head(const struct gatednorm *a, int r, int at, float *dw) {
    const int n = a->dim;
    const float *x = a->x.data + r * a->x.stride + at, *z = a->z.data + r * a->z.stride + at;
    const float *dy = a->dy.data + r * a->dy.stride + at;
    float inverse = 1 / sqrtf(dot(x, x, n) / n + a->eps);
    vec along = {0};
    for (int j = 0; j < n; j += LANES) {
        int left = n - j;
        vec normal = inverse * load(x + j, left), w = load(a->w + j, left);
        vec gate = load(z + j, left), s = sigmoid(gate), d = load(dy + j, left), u = d * gate * s;
        along += u * w * normal;
        if (dw) add_to(dw + j, left, u * normal);
        if (a->dz.data)
            give(a->dz, a->dz.data + r * a->dz.stride + at + j, left, d * normal * w * s * (1 + gate * (1 - s)));
    }
    if (!a->dx.data) return;
    float *dx = a->dx.data + r * a->dx.stride + at;
    float mean = sum(along) / n;
    for (int j = 0; j < n; j += LANES) {
        int left = n - j;
        vec u = load(dy + j, left) * silu(load(z + j, left));
        give(a->dx, dx + j, left, inverse * (u * load(a->w + j, left) - inverse * load(x + j, left) * mean));
    }
}

CPU_CLONES
static void forward_rows(void *arg, int task) {
    const struct gatednorm *a = arg;
    for (int r = task * ROW_BLOCK; r < row_end(a->rows, task); r++)
        for (int h = 0; h < a->heads; h++) forward_head(a, r, h * a->dim);
}

CPU_CLONES
static void backward_rows(void *arg, int task) {
    const struct gatednorm *a = arg;
    float *dw = a->dw ? a->partial + (long)task * a->dim : 0;
    if (dw) memset(dw, 0, a->dim * sizeof(float));
    for (int r = task * ROW_BLOCK; r < row_end(a->rows, task); r++)
        for (int h = 0; h < a->heads; h++) backward_head(a, r, h * a->dim, dw);
}

CPU_CLONES
static void add_weight_gradient(const struct gatednorm *a) {
    add_blocks(a->dw, a->partial, row_blocks(a->rows), a->dim);
}

void gatednorm_forward(struct cpu *cpu, struct gatednorm a) {
    parallel_for(cpu, forward_rows, &a, row_blocks(a.rows));
}

void gatednorm_backward(struct cpu *cpu, struct gatednorm a) {
    parallel_for(cpu, backward_rows, &a, row_blocks(a.rows));
    if (a.dw) add_weight_gradient(&a);
}
