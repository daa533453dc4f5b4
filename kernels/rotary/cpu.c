#include "rotary.h"

#include "vector.h"

// to = from with its pairs rotated by the angles of row r, or by the opposite ones
// where sign is -1. from and to may be the same.
VECTOR_INLINE void rotate(const struct rotary *a, int r, float sign, const float *from, float *to) {
    const int half = a->rotary_dims / 2;
    const float *cosine = a->angles + (long)a->positions[r] * a->rotary_dims, *sine = cosine + half;
#pragma GCC ivdep
    for (int j = 0; j < half; j++) {
        float u = from[j], v = from[half + j];
        to[j] = u * cosine[j] - sign * v * sine[j];
        to[half + j] = v * cosine[j] + sign * u * sine[j];
    }
}

VECTOR_INLINE void forward_head(const struct rotary *a, int r, int h) {
    const int n = a->dim;
    const float *x = a->x.data + r * a->x.stride + h * a->head_stride;
    float *y = a->y.data + r * a->y.stride + h * n;
    float inverse = 1 / sqrtf(dot(x, x, n) / n + a->eps);
    for (int j = 0; j < n; j += LANES)
        store(y + j, n - j, load(x + j, n - j) * inverse * (a->offset + load(a->w + j, n - j)));
    rotate(a, r, 1, y, y);
}

VECTOR_INLINE void backward_head(const struct rotary *a, int r, int h, float *dw) {
    const int n = a->dim, turned = a->rotary_dims;
    const float *x = a->x.data + r * a->x.stride + h * a->head_stride;
    const float *dy = a->dy.data + r * a->dy.stride + h * n;
    float du[MAX_DIM];
    rotate(a, r, -1, dy, du);
    memcpy(du + turned, dy + turned, (n - turned) * sizeof(float));

    float inverse = 1 / sqrtf(dot(x, x, n) / n + a->eps);
    vec along = {0};
    for (int j = 0; j < n; j += LANES) {
        vec normal = load(x + j, n - j) * inverse, d = load(du + j, n - j);
        along += d * (a->offset + load(a->w + j, n - j)) * normal;
        if (dw) add_to(dw + j, n - j, d * normal);
    }
    if (!a->dx.data) return;
    float *dx = a->dx.data + r * a->dx.stride + h * a->head_stride;
    float mean = sum(along) / n;
    for (int j = 0; j < n; j += LANES) {
        vec d = load(du + j, n - j) * (a->offset + load(a->w + j, n - j));
        add_to(dx + j, n - j, inverse * (d - load(x + j, n - j) * inverse * mean));
    }
}

CPU_CLONES
static void forward_rows(void *arg, int task) {
    const struct rotary *a = arg;
    for (int r = task * ROW_BLOCK; r < row_end(a->rows, task); r++)
        for (int h = 0; h < a->heads; h++) forward_head(a, r, h);
}

CPU_CLONES
static void backward_rows(void *arg, int task) {
    const struct rotary *a = arg;
    float *dw = a->dw ? a->partial + (long)task * a->dim : 0;
    if (dw) memset(dw, 0, a->dim * sizeof(float));
    for (int r = task * ROW_BLOCK; r < row_end(a->rows, task); r++)
        for (int h = 0; h < a->heads; h++) backward_head(a, r, h, dw);
}

CPU_CLONES
static void add_weight_gradient(const struct rotary *a) {
    add_blocks(a->dw, a->partial, row_blocks(a->rows), a->dim);
}

void rotary_forward(struct cpu *cpu, struct rotary a) {
    parallel_for(cpu, forward_rows, &a, row_blocks(a.rows));
}

void rotary_backward(struct cpu *cpu, struct rotary a) {
    parallel_for(cpu, backward_rows, &a, row_blocks(a.rows));
    if (a.dw) add_weight_gradient(&a);
}
