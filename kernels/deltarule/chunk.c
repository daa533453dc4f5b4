#include "chunk.h"

#include <math.h>

#include "product.h"
#include "rows.h"

static struct matrix view(struct matrix x, int row, int column) {
    return (struct matrix){x.data + row * x.stride + column, x.stride};
}

static int min(int a, int b) { return a < b ? a : b; }

// The end of the band that row i is in, though the chunk may end before.
static int band_end(int i) { return (i / BAND + 1) * BAND; }

void chunk_open(struct chunk *c, const struct deltarule *a, int row, int n, int key_head) {
    c->a = a, c->row = row, c->n = n, c->key_head = key_head;
    c->q = view(a->q, row, key_head * a->key_dim);
    c->k = view(a->k, row, key_head * a->key_dim);
}

void chunk_match(struct chunk *c) {
    int n = c->n, dim = c->a->key_dim;
    transpose(c->kt, CHUNK, c->k.data, c->k.stride, n, dim);
    for (int j = 0; j < dim; j++) memset(c->kt + j * CHUNK + n, 0, sizeof(float) * (band_end(n - 1) - n));
    for (int i = 0; i < n; i += BAND) {
        struct matrix k = view(c->k, i, 0), q = view(c->q, i, 0);
        product(min(BAND, n - i), i + BAND, dim, plain(k.data, k.stride), c->kt, CHUNK, c->kk + i * CHUNK, CHUNK, 0);
        product(min(BAND, n - i), i + BAND, dim, plain(q.data, q.stride), c->kt, CHUNK, c->qk + i * CHUNK, CHUNK, 0);
    }
}

CPU_CLONES
void chunk_turn(struct chunk *c, int head) {
    const struct deltarule *a = c->a;
    double total[CHUNK] = {0}, sum = 0;
    c->head = head;
    c->r = a->residuals.data ? view(a->residuals, c->row, head * a->value_dim) : (struct matrix){c->own, a->value_dim};
    for (int i = 0; i < c->n; i++) {
        sum += a->g.data[(c->row + i) * a->g.stride + head];
        total[i] = sum;
        c->beta[i] = a->beta.data[(c->row + i) * a->beta.stride + head];
    }
    for (int i = 0; i < c->n; i++) {
        float *decay = c->decay + i * CHUNK;
        for (int j = 0; j < band_end(i); j++) decay[j] = total[i] - total[j];
        for (int j = 0; j < band_end(i); j += LANES)
            store(decay + j, LANES, choose(lanes_below(i + 1 - j), exp_vec(load(decay + j, LANES)), splat(0)));
        c->gamma[i] = expf(total[i]);
        c->to_end[i] = expf(sum - total[i]);
    }
}

CPU_CLONES
void chunk_solve(struct chunk *c, const float *s) {
    const struct deltarule *a = c->a;
    int n = c->n, dim = a->value_dim;
    float t[CHUNK * CHUNK]; // minus <k_i, k_j> Gam_ij below the diagonal
    struct matrix v = view(a->v, c->row, c->head * dim);
    product(n, dim, a->key_dim, plain(c->k.data, c->k.stride), s, dim, c->u, dim, 0);
    for (int i = 0; i < n; i++) {
        float *r = c->r.data + i * c->r.stride;
        const float *vi = v.data + i * v.stride, *u = c->u + i * dim;
        for (int j = 0; j < dim; j++) r[j] = vi[j] - c->gamma[i] * u[j];
        for (int j = i * CHUNK; j < i * CHUNK + band_end(i); j += LANES)
            store(t + j, LANES, -load(c->kk + j, LANES) * load(c->decay + j, LANES));
    }
    for (int i = 0; i < n; i++) {
        float *r = c->r.data + i * c->r.stride;
        int band = i / BAND * BAND;
        if (i == band)
            product(min(BAND, n - i), dim, band, plain(t + i * CHUNK, CHUNK), c->x, dim, r, c->r.stride, 1);
        add_rows(r, t + i * CHUNK + band, i - band, c->x + band * dim, dim, dim);
        scale_row(c->x + i * dim, c->beta[i], r, dim);
    }
}

CPU_CLONES
void chunk_recall(struct chunk *c) {
    int dim = c->a->value_dim;
    for (int i = 0; i < c->n; i++) scale_row(c->x + i * dim, c->beta[i], c->r.data + i * c->r.stride, dim);
}

CPU_CLONES
void chunk_output(const struct chunk *c, const float *s) {
    const struct deltarule *a = c->a;
    int n = c->n, dim = a->value_dim;
    const float scale = 1 / sqrtf(a->key_dim);
    const vec scales = splat(scale);
    float q[CHUNK * MAX_DIM], p[CHUNK * CHUNK];
    struct matrix o = view(a->out, c->row, c->head * dim);
    for (int i = 0; i < n; i++) {
        scale_row(q + i * a->key_dim, scale * c->gamma[i], c->q.data + i * c->q.stride, a->key_dim);
        for (int j = i * CHUNK; j < i * CHUNK + band_end(i); j += LANES)
            store(p + j, LANES, scales * load(c->qk + j, LANES) * load(c->decay + j, LANES));
    }
    product(n, dim, a->key_dim, plain(q, a->key_dim), s, dim, o.data, o.stride, 0);
    for (int i = 0; i < n; i++) {
        int band = i / BAND * BAND;
        if (i == band)
            product(min(BAND, n - i), dim, band, plain(p + i * CHUNK, CHUNK), c->x, dim, o.data + i * o.stride, o.stride, 1);
        add_rows(o.data + i * o.stride, p + i * CHUNK + band, i - band + 1, c->x + band * dim, dim, dim);
    }
}

CPU_CLONES
void chunk_advance(const struct chunk *c, const float *s, float *next) {
    const struct deltarule *a = c->a;
    int n = c->n, dim = a->value_dim;
    float kept[CHUNK * MAX_DIM];
    for (int i = 0; i < n; i++) scale_row(kept + i * dim, c->to_end[i], c->x + i * dim, dim);
    scale_row(next, c->gamma[n - 1], s, a->key_dim * dim);
    product(a->key_dim, dim, n, transposed(c->k.data, c->k.stride), kept, dim, next, dim, 1);
}
