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
// float64, since its terms cancel in the last line.
#include <math.h>

#include "chunk.h"
#include "rows.h"
#include "vector.h"

VECTOR_INLINE float *at(struct matrix x, int row, int column) { return x.data + row * x.stride + column; }

// What chunk_backward works with.
struct work {
    float dx[CHUNK * MAX_DIM], du[CHUNK * MAX_DIM], rows[CHUNK * MAX_DIM];
    float p[CHUNK * CHUNK], t[CHUNK * CHUNK], dp[CHUNK * CHUNK], dt[CHUNK * CHUNK];
    double dG[CHUNK];
};

// P and T, zero where they have no entry.
VECTOR_INLINE void fill_matrices(const struct chunk *c, struct work *w) {
    float scale = 1 / sqrtf(c->a->key_dim);
    for (int i = 0; i < c->n; i++) {
        float *p = w->p + i * CHUNK, *t = w->t + i * CHUNK;
        memset(p, 0, sizeof(float) * CHUNK);
        memset(t, 0, sizeof(float) * CHUNK);
        const float *decay = c->decay + i * CHUNK, *qk = c->qk + i * CHUNK, *kk = c->kk + i * CHUNK;
        for (int j = 0; j <= i; j++) p[j] = scale * decay[j] * qk[j];
        for (int j = 0; j < i; j++) t[j] = c->beta[i] * decay[j] * kk[j];
    }
}

// Solves (I + T)^T dR = dx in place, last row first.
VECTOR_INLINE void substitute_back(const struct chunk *c, struct work *w) {
    int dim = c->a->value_dim;
    for (int i = c->n - 2; i >= 0; i--) {
        float f[CHUNK], *rows = w->dx + i * dim;
        int below = c->n - 1 - i;
        for (int k = 0; k < below; k++) f[k] = -w->t[(i + 1 + k) * CHUNK + i];
        add_rows(rows, f, below, rows + dim, dim, dim);
    }
}

// From dR (in dx): gradients of v, beta and U.
VECTOR_INLINE void backward_residuals(const struct chunk *c, struct work *w) {
    const struct deltarule *a = c->a;
    int dim = a->value_dim;
    for (int i = 0; i < c->n; i++) {
        const float *dr = w->dx + i * dim;
        float *du = w->du + i * dim;
        if (a->dbeta.data) *at(a->dbeta, c->row + i, c->head) += dot(dr, c->r + i * dim, dim);
        scale_row(du, c->beta[i], dr, dim);
        if (a->dv.data) add_row(at(a->dv, c->row + i, c->head * dim), du, dim);
        scale_row(du, -c->gamma[i], du, dim);
        w->dG[i] += dot(du, c->u + i * dim, dim);
    }
}

// From dT and dP: what <k_i,k_j> and <q_i,k_j> get, and Z's share of dG.
VECTOR_INLINE void backward_matrices(const struct chunk *c, struct chunk_gradient *d, struct work *w) {
    float scale = 1 / sqrtf(c->a->key_dim);
    for (int i = 0; i < c->n; i++) {
        const float *decay = c->decay + i * CHUNK, *qk = c->qk + i * CHUNK, *t = w->t + i * CHUNK;
        const float *dp = w->dp + i * CHUNK, *dt = w->dt + i * CHUNK;
        float *dqk = d->dqk + i * CHUNK, *dkk = d->dkk + i * CHUNK;
        double row = 0;
        for (int j = 0; j < i; j++) {
            float p = scale * dp[j] * decay[j];
            dqk[j] += p;
            dkk[j] -= c->beta[i] * dt[j] * decay[j];
            double z = p * qk[j] - dt[j] * t[j];
            row += z;
            w->dG[j] -= z;
        }
        dqk[i] += scale * dp[i];
        w->dG[i] += row;
    }
}

// dK and dQ from what the state at the end and the readings take from the state S,
// and D at the chunk's start.
VECTOR_INLINE void backward_state(const struct chunk *c, struct chunk_gradient *d, struct work *w, const float *s,
                                  float *ds) {
    const struct deltarule *a = c->a;
    const struct cpu *cpu = a->cpu;
    int n = c->n, dk = a->key_dim, dv = a->value_dim, size = dk * dv;
    float last = c->gamma[n - 1], scaled = 1 / sqrtf(dk);
    struct matrix dout = {at(a->dout, c->row, c->head * dv), a->dout.stride};
    double kept = last * dot(ds, s, size);
    cpu->gemm_serial(0, 1, n, dk, dv, c->x, dv, ds, dv, w->rows, dk, 0);
    for (int i = 0; i < n; i++) {
        float *dke = w->rows + i * dk;
        scale_row(dke, c->to_end[i], dke, dk);
        double e = dot(dke, at(c->k, i, 0), dk);
        w->dG[i] -= e;
        kept += e;
        add_row(d->dk + i * dk, dke, dk);
    }
    w->dG[n - 1] += kept;
    cpu->gemm_serial(0, 1, n, dk, dv, w->du, dv, s, dv, d->dk, dk, 1);
    cpu->gemm_serial(0, 1, n, dk, dv, dout.data, dout.stride, s, dv, w->rows, dk, 0);
    for (int i = 0; i < n; i++) {
        float *dqe = w->rows + i * dk;
        scale_row(dqe, scaled * c->gamma[i], dqe, dk);
        w->dG[i] += dot(dqe, at(c->q, i, 0), dk);
        add_row(d->dq + i * dk, dqe, dk);
    }
    scale_row(ds, last, ds, size);
    for (int i = 0; i < n; i++) scale_row(w->rows + i * dv, scaled * c->gamma[i], at(dout, i, 0), dv);
    cpu->gemm_serial(1, 0, dk, dv, n, c->q.data, c->q.stride, w->rows, dv, ds, dv, 1);
    cpu->gemm_serial(1, 0, dk, dv, n, c->k.data, c->k.stride, w->du, dv, ds, dv, 1);
}

CPU_CLONES
void chunk_backward(const struct chunk *c, struct chunk_gradient *d, const float *s, float *ds) {
    const struct deltarule *a = c->a;
    const struct cpu *cpu = a->cpu;
    int n = c->n, dim = a->value_dim;
    struct matrix dout = {at(a->dout, c->row, c->head * dim), a->dout.stride};
    struct work w;
    memset(w.dG, 0, sizeof w.dG);
    fill_matrices(c, &w);

    cpu->gemm_serial(0, 0, n, dim, a->key_dim, c->k.data, c->k.stride, ds, dim, w.dx, dim, 0);
    for (int i = 0; i < n; i++) scale_row(w.dx + i * dim, c->to_end[i], w.dx + i * dim, dim);
    cpu->gemm_serial(1, 0, n, dim, n, w.p, CHUNK, dout.data, dout.stride, w.dx, dim, 1);
    substitute_back(c, &w);
    backward_residuals(c, &w);

    cpu->gemm_serial(0, 1, n, n, dim, w.dx, dim, c->x, dim, w.dt, CHUNK, 0); // -dT
    cpu->gemm_serial(0, 1, n, n, dim, dout.data, dout.stride, c->x, dim, w.dp, CHUNK, 0);
    backward_matrices(c, d, &w);
    backward_state(c, d, &w, s, ds);

    if (!a->dg.data) return;
    double sum = 0;
    for (int i = n - 1; i >= 0; i--) {
        sum += w.dG[i];
        *at(a->dg, c->row + i, c->head) += sum;
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
    a->cpu->gemm_serial(0, 0, n, dim, n, d->dqk, CHUNK, c->k.data, c->k.stride, d->dq, dim, 1);
    a->cpu->gemm_serial(1, 0, n, dim, n, d->dqk, CHUNK, c->q.data, c->q.stride, d->dk, dim, 1);
    a->cpu->gemm_serial(0, 0, n, dim, n, d->dkk, CHUNK, c->k.data, c->k.stride, d->dk, dim, 1);
    for (int i = 0; i < n; i++) {
        if (a->dq.data) add_row(at(a->dq, c->row + i, column), d->dq + i * dim, dim);
        if (a->dk.data) add_row(at(a->dk, c->row + i, column), d->dk + i * dim, dim);
    }
}
