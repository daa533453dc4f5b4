// The adjoint of a chunk. With T, x, r, U as in chunk.h, P_ij = c <q_i, k_j> Gam_ij
// for j <= i, D the gradient of the state at the chunk's end, dO that of the
// readings, and G's gradient dG:
//
//     dx   = exp(G_n - G) .* (K D) + P^T dO
//     dR   = (I + T)^-T dx                     back substitution
//     dbeta_i = <dR_i, r_i>    dV = beta .* dR    dU = -gamma .* dV    dG_i += <dU_i, U_i>
//     dT   = -dR x^T, dP = c dO x^T            (<k_i,k_j> and <q_i,k_j> get them times
//                                               beta_i Gam_ij and Gam_ij)
//     Z    = dT .* T + dP .* P / c, j < i      dG_i += sum_j Z_ij, dG_j -= sum_i Z_ij
//     dKe  = exp(G_n - G) .* (x D^T)           e_i = <dKe_i, k_i>
//     dG_i -= e_i, dG_n += sum_i e_i + gamma_n <D, S>
//     dK  += dKe + dU S^T
//     dQe  = c gamma .* (dO S^T)               dG_i += <dQe_i, q_i>, dQ += dQe
//     D   <- gamma_n D + (c gamma .* Q)^T dO + K^T dU
//     dg_i = dG_i + .. + dG_n
//
// The diagonal is left out of Z: Gam_ii is 1 whatever the decay. dG is kept in
// float64, since its terms cancel in the last line. Triangular products go band by
// band, as forward.
#include <math.h>

#include "chunk.h"
#include "product.h"
#include "rows.h"

VECTOR_INLINE float *at(struct matrix x, int row, int column) { return x.data + row * x.stride + column; }

static int min(int a, int b) { return a < b ? a : b; }

VECTOR_INLINE void give_row(struct matrix gradient, float *to, const float *x, int n) {
    for (int j = 0; j < n; j += LANES) give(gradient, to + j, n - j, load(x + j, n - j));
}

VECTOR_INLINE void give_one(struct matrix gradient, int row, int column, double x) {
    float *to = at(gradient, row, column);
    *to = (gradient.fresh ? 0 : *to) + x;
}

// What chunk_backward works with.
struct work {
    float dx[CHUNK * MAX_DIM], du[CHUNK * MAX_DIM], rows[CHUNK * MAX_DIM];
    float xt[MAX_DIM * CHUNK], turned[MAX_DIM * MAX_DIM]; // transposes: of x, and of a state
    float p[CHUNK * CHUNK], t[CHUNK * CHUNK];             // P and -T, and zeros up to a whole band
    float dp[CHUNK * CHUNK], dt[CHUNK * CHUNK];           // dP / c and -dT
    double dG[CHUNK];
};

VECTOR_INLINE void fill_matrices(const struct chunk *c, struct work *w) {
    const vec scale = splat(1 / sqrtf(c->a->key_dim)), none = {0};
    for (int i = 0; i < c->n; i++) {
        const vec minus_beta = splat(-c->beta[i]);
        for (int j = 0; j <= i; j += LANES) {
            int at = i * CHUNK + j;
            vec decay = load(c->decay + at, LANES);
            vec p = scale * decay * load(c->qk + at, LANES), t = minus_beta * decay * load(c->kk + at, LANES);
            store(w->p + at, LANES, choose(lanes_below(i + 1 - j), p, none));
            store(w->t + at, LANES, choose(lanes_below(i - j), t, none));
        }
    }
}

// dx = to_end .* (K D) + P^T dO.
VECTOR_INLINE void backward_writes(const struct chunk *c, struct work *w, struct matrix dout, const float *ds, int unused) {
    int n = c->n, dim = c->a->value_dim;
    if (!unused) product(n, dim, c->a->key_dim, plain(c->k.data, c->k.stride), ds, dim, w->dx, dim, 0);
    for (int i = 0; i < n && !unused; i++) scale_row(w->dx + i * dim, c->to_end[i], w->dx + i * dim, dim);
    for (int i = 0; i < n; i += BAND)
        product(min(BAND, n - i), dim, n - i, transposed(w->p + i * CHUNK + i, CHUNK), at(dout, i, 0), dout.stride,
                w->dx + i * dim, dim, !unused);
}

// Solves (I + T)^T dR = dx in place, last row first.
VECTOR_INLINE void substitute_back(const struct chunk *c, struct work *w) {
    int n = c->n, dim = c->a->value_dim;
    for (int band = (n - 1) / BAND * BAND; band >= 0; band -= BAND) {
        int end = min(band + BAND, n);
        product(end - band, dim, n - end, transposed(w->t + end * CHUNK + band, CHUNK), w->dx + end * dim, dim,
                w->dx + band * dim, dim, 1);
        for (int i = end - 2; i >= band; i--) {
            float f[BAND], *row = w->dx + i * dim;
            int below = end - 1 - i;
            for (int k = 0; k < below; k++) f[k] = w->t[(i + 1 + k) * CHUNK + i];
            add_rows(row, f, below, row + dim, dim, dim);
        }
    }
}

// From dR (in dx): gradients of v, beta and U.
VECTOR_INLINE void backward_residuals(const struct chunk *c, struct work *w) {
    const struct deltarule *a = c->a;
    int dim = a->value_dim;
    for (int i = 0; i < c->n; i++) {
        const float *dr = w->dx + i * dim;
        float *du = w->du + i * dim;
        if (a->dbeta.data) give_one(a->dbeta, c->row + i, c->head, dot(dr, c->r.data + i * c->r.stride, dim));
        scale_row(du, c->beta[i], dr, dim);
        if (a->dv.data) give_row(a->dv, at(a->dv, c->row + i, c->head * dim), du, dim);
        scale_row(du, -c->gamma[i], du, dim);
        w->dG[i] += dot(du, c->u + i * dim, dim);
    }
}

typedef double vec_double __attribute__((vector_size(128)));

// From dT and dP: what <k_i,k_j> and <q_i,k_j> get, and Z's share of dG.
VECTOR_INLINE void backward_matrices(const struct chunk *c, struct chunk_gradient *d, struct work *w, struct matrix dout) {
    int n = c->n, dim = c->a->value_dim;
    const vec scale = splat(1 / sqrtf(c->a->key_dim)), none = {0};
    vec_double columns[CHUNK / LANES] = {0};
    transpose(w->xt, CHUNK, c->x, dim, n, dim);
    for (int i = 0; i < n; i += BAND) {
        int rows = min(BAND, n - i), cols = min(i + BAND, n);
        product(rows, cols, dim, plain(w->dx + i * dim, dim), w->xt, CHUNK, w->dt + i * CHUNK, CHUNK, 0);
        product(rows, cols, dim, plain(at(dout, i, 0), dout.stride), w->xt, CHUNK, w->dp + i * CHUNK, CHUNK, 0);
    }
    for (int i = 0; i < n; i++) {
        const vec minus_beta = splat(-c->beta[i]);
        vec_double row = {0};
        for (int j = 0; j <= i; j += LANES) {
            int at = i * CHUNK + j;
            vec decay = load(c->decay + at, LANES);
            vec_int seen = lanes_below(i + 1 - j), before = lanes_below(i - j);
            vec p = choose(seen, scale * load(w->dp + at, LANES) * decay, none);
            vec dt = choose(before, load(w->dt + at, LANES), none);
            add_to(d->dqk + at, LANES, p);
            add_to(d->dkk + at, LANES, minus_beta * dt * decay);
            vec z = choose(before, p * load(c->qk + at, LANES), none) + dt * load(w->t + at, LANES);
            vec_double wide = __builtin_convertvector(z, vec_double);
            row += wide;
            columns[j / LANES] -= wide;
        }
        for (int l = 0; l < LANES; l++) w->dG[i] += row[l];
    }
    for (int i = 0; i < n; i++) w->dG[i] += columns[i / LANES][i % LANES];
}

// dK from the state at the end, which is made of the one at the start and of the writes.
VECTOR_INLINE void backward_end(const struct chunk *c, struct chunk_gradient *d, struct work *w, const float *s, const float *ds) {
    int n = c->n, dk = c->a->key_dim, dv = c->a->value_dim;
    double kept = c->gamma[n - 1] * dot(ds, s, dk * dv);
    transpose(w->turned, dk, ds, dv, dk, dv);
    product(n, dk, dv, plain(c->x, dv), w->turned, dk, w->rows, dk, 0);
    for (int i = 0; i < n; i++) {
        float *dke = w->rows + i * dk;
        scale_row(dke, c->to_end[i], dke, dk);
        double e = dot(dke, at(c->k, i, 0), dk);
        w->dG[i] -= e;
        kept += e;
        add_row(d->dk + i * dk, dke, dk);
    }
    w->dG[n - 1] += kept;
}

// dK and dQ from what residuals and readings take from the state S, and D at the chunk's
// start.
VECTOR_INLINE void backward_state(const struct chunk *c, struct chunk_gradient *d, struct work *w, struct matrix dout,
                                  const float *s, float *ds) {
    int n = c->n, dk = c->a->key_dim, dv = c->a->value_dim;
    float scaled = 1 / sqrtf(dk);
    transpose(w->turned, dk, s, dv, dk, dv);
    product(n, dk, dv, plain(w->du, dv), w->turned, dk, d->dk, dk, 1);
    product(n, dk, dv, plain(dout.data, dout.stride), w->turned, dk, w->rows, dk, 0);
    for (int i = 0; i < n; i++) {
        float *dqe = w->rows + i * dk;
        scale_row(dqe, scaled * c->gamma[i], dqe, dk);
        w->dG[i] += dot(dqe, at(c->q, i, 0), dk);
        add_row(d->dq + i * dk, dqe, dk);
    }
    scale_row(ds, c->gamma[n - 1], ds, dk * dv);
    for (int i = 0; i < n; i++) scale_row(w->rows + i * dv, scaled * c->gamma[i], at(dout, i, 0), dv);
    product(dk, dv, n, transposed(c->q.data, c->q.stride), w->rows, dv, ds, dv, 1);
    product(dk, dv, n, transposed(c->k.data, c->k.stride), w->du, dv, ds, dv, 1);
}

CPU_CLONES
void chunk_backward(struct chunk *c, struct chunk_gradient *d, const float *s, float *ds, int unused) {
    const struct deltarule *a = c->a;
    int n = c->n, dim = a->value_dim;
    struct matrix dout = {at(a->dout, c->row, c->head * dim), a->dout.stride};
    struct work w;
    memset(w.dG, 0, sizeof w.dG);
    product(n, dim, a->key_dim, plain(c->k.data, c->k.stride), s, dim, c->u, dim, 0);
    fill_matrices(c, &w);
    backward_writes(c, &w, dout, ds, unused);
    substitute_back(c, &w);
    backward_residuals(c, &w);
    backward_matrices(c, d, &w, dout);
    if (!unused) backward_end(c, d, &w, s, ds);
    backward_state(c, d, &w, dout, s, ds);

    if (!a->dg.data) return;
    double sum = 0;
    for (int i = n - 1; i >= 0; i--) {
        sum += w.dG[i];
        give_one(a->dg, c->row + i, c->head, sum);
    }
}

void chunk_gradient_open(const struct chunk *c, struct chunk_gradient *d) {
    memset(d->dq, 0, sizeof(float) * c->n * c->a->key_dim);
    memset(d->dk, 0, sizeof(float) * c->n * c->a->key_dim);
    memset(d->dqk, 0, sizeof(float) * c->n * CHUNK);
    memset(d->dkk, 0, sizeof(float) * c->n * CHUNK);
}

CPU_CLONES
void chunk_gradient_close(const struct chunk *c, struct chunk_gradient *d) {
    const struct deltarule *a = c->a;
    int n = c->n, dim = a->key_dim, column = c->key_head * dim;
    for (int i = 0; i < n; i++) // <k_i,k_j> belongs to both rows
        for (int j = 0; j < i; j++) d->dkk[j * CHUNK + i] = d->dkk[i * CHUNK + j];
    for (int i = 0; i < n; i += BAND) {
        int rows = min(BAND, n - i), seen = min(i + BAND, n);
        product(rows, dim, seen, plain(d->dqk + i * CHUNK, CHUNK), c->k.data, c->k.stride, d->dq + i * dim, dim, 1);
        product(rows, dim, n - i, transposed(d->dqk + i * CHUNK + i, CHUNK), at(c->q, i, 0), c->q.stride, d->dk + i * dim, dim, 1);
    }
    product(n, dim, n, plain(d->dkk, CHUNK), c->k.data, c->k.stride, d->dk, dim, 1);
    for (int i = 0; i < n; i++) {
        if (a->dq.data) give_row(a->dq, at(a->dq, c->row + i, column), d->dq + i * dim, dim);
        if (a->dk.data) give_row(a->dk, at(a->dk, c->row + i, column), d->dk + i * dim, dim);
    }
}
