#include "chunk.h"

#include <math.h>

#include "rows.h"
#include "vector.h"

static struct matrix view(struct matrix x, int row, int column) {
    return (struct matrix){x.data + row * x.stride + column, x.stride};
}

void chunk_open(struct chunk *c, const struct deltarule *a, int row, int n, int key_head) {
    int d = a->key_dim;
    c->a = a, c->row = row, c->n = n, c->key_head = key_head;
    c->q = view(a->q, row, key_head * d);
    c->k = view(a->k, row, key_head * d);
    a->cpu->gemm_serial(0, 1, n, n, d, c->k.data, c->k.stride, c->k.data, c->k.stride, c->kk, CHUNK, 0);
    a->cpu->gemm_serial(0, 1, n, n, d, c->q.data, c->q.stride, c->k.data, c->k.stride, c->qk, CHUNK, 0);
}

VECTOR_INLINE void fill_decays(struct chunk *c) {
    const struct deltarule *a = c->a;
    double total[CHUNK] = {0}, sum = 0;
    for (int i = 0; i < c->n; i++) {
        sum += a->g.data[(c->row + i) * a->g.stride + c->head];
        total[i] = sum;
        c->beta[i] = a->beta.data[(c->row + i) * a->beta.stride + c->head];
    }
    for (int i = 0; i < c->n; i++) {
        float *decay = c->decay + i * CHUNK;
        int end = (i / LANES + 1) * LANES; // whole vectors; what lies above the diagonal becomes 0
        for (int j = 0; j < end; j++) decay[j] = j <= i ? total[i] - total[j] : -INFINITY;
        for (int j = 0; j < end; j += LANES) store(decay + j, LANES, exp_vec(load(decay + j, LANES)));
        c->gamma[i] = expf(total[i]);
        c->to_end[i] = expf(sum - total[i]);
    }
}

CPU_CLONES
void chunk_solve(struct chunk *c, int head, const float *s) {
    const struct deltarule *a = c->a;
    int n = c->n, dim = a->value_dim;
    c->head = head;
    fill_decays(c);
    a->cpu->gemm_serial(0, 0, n, dim, a->key_dim, c->k.data, c->k.stride, s, dim, c->u, dim, 0);
    struct matrix v = view(a->v, c->row, head * dim);
    for (int i = 0; i < n; i++) { // apart from the substitution, so that reads of v overlap
        float *r = c->r + i * dim;
        const float *vi = v.data + i * v.stride, *u = c->u + i * dim;
        for (int j = 0; j < dim; j++) r[j] = vi[j] - c->gamma[i] * u[j];
    }
    for (int i = 0; i < n; i++) {
        float *r = c->r + i * dim, f[CHUNK];
        for (int j = 0; j < i; j++) f[j] = -c->kk[i * CHUNK + j] * c->decay[i * CHUNK + j];
        add_rows(r, f, i, c->x, dim, dim);
        scale_row(c->x + i * dim, c->beta[i], r, dim);
    }
}

CPU_CLONES
void chunk_output(const struct chunk *c, const float *s) {
    const struct deltarule *a = c->a;
    int n = c->n, dim = a->value_dim;
    float scale = 1 / sqrtf(a->key_dim);
    struct matrix o = view(a->out, c->row, c->head * dim);
    a->cpu->gemm_serial(0, 0, n, dim, a->key_dim, c->q.data, c->q.stride, s, dim, o.data, o.stride, 0);
    for (int i = 0; i < n; i++) {
        float *y = o.data + i * o.stride, f[CHUNK];
        scale_row(y, scale * c->gamma[i], y, dim);
        for (int j = 0; j <= i; j++) f[j] = scale * c->qk[i * CHUNK + j] * c->decay[i * CHUNK + j];
        add_rows(y, f, i + 1, c->x, dim, dim);
    }
}

CPU_CLONES
void chunk_advance(const struct chunk *c, const float *s, float *next) {
    const struct deltarule *a = c->a;
    int n = c->n, dim = a->value_dim, size = a->key_dim * dim;
    float kept[CHUNK * MAX_DIM];
    for (int i = 0; i < n; i++) scale_row(kept + i * dim, c->to_end[i], c->x + i * dim, dim);
    scale_row(next, c->gamma[n - 1], s, size);
    a->cpu->gemm_serial(1, 0, a->key_dim, dim, n, c->k.data, c->k.stride, kept, dim, next, dim, 1);
}
