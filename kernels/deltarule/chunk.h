// The gated delta rule on one chunk: up to CHUNK consecutive tokens of a segment,
// under one key head and then one of its value heads at a time.
//
// With the state S at the chunk's start, rows K, Q, V, the cumulated log decay G_i,
// gamma_i = exp(G_i), Gam_ij = exp(G_i - G_j) and c = KeyDim^-1/2, the residuals r
// and the writes x of the recurrence are
//
//     U = K S        r_i = V_i - gamma_i U_i - sum_{j<i} <k_i, k_j> Gam_ij x_j
//     x_i = beta_i r_i
//
// or (I + T) x = beta .* (V - gamma .* U) with T_ij = beta_i <k_i, k_j> Gam_ij below
// the diagonal: a triangular system that forward substitution solves row by row.
// BAND rows at a time, so that all but the triangles on the diagonal are matrix
// products. (GPU kernels form the inverse of I + T for the same end; here substitution
// is fewer operations, and a row never touches a later one.) Then
//
//     O_i = c (gamma_i S^T q_i + sum_{j<=i} <q_i, k_j> Gam_ij x_j)
//     S'  = gamma_n S + sum_j exp(G_n - G_j) k_j x_j^T
//
// Source: Yang et al. 2024 (arXiv 2412.06464), section 3.3. Exponents are differences
// of float64 sums and never positive, so strong decay loses no digits.
#ifndef CAPER_DELTARULE_CHUNK_H
#define CAPER_DELTARULE_CHUNK_H

#include "deltarule.h"

enum { BAND = 16 }; // rows of a triangular product that are taken at once

struct chunk {
    const struct deltarule *a;
    int row, n, key_head; // rows [row, row + n)
    struct matrix q, k;   // of the key head
    float kt[MAX_DIM * CHUNK];            // K transposed, and zeros up to a whole band
    float kk[CHUNK * CHUNK], qk[CHUNK * CHUNK]; // bands end at the diagonal's own

    int head; // value head, and what belongs to it:
    float beta[CHUNK], gamma[CHUNK];
    float to_end[CHUNK];        // exp(G_n - G_j)
    float decay[CHUNK * CHUNK]; // Gam, and zeros up to a whole band
    struct matrix r;            // the residuals: in the rows that the caller keeps, or in `own`
    float u[CHUNK * MAX_DIM], x[CHUNK * MAX_DIM], own[CHUNK * MAX_DIM];
};

// Makes c the chunk of rows [row, row + n) under key_head.
void chunk_open(struct chunk *c, const struct deltarule *a, int row, int n, int key_head);
// Fills in the products of its keys with each other and with the queries.
void chunk_match(struct chunk *c);
// Turns to a value head: fills in what follows from beta and g.
void chunk_turn(struct chunk *c, int head);
// Sets U, r and x, where the state at the chunk's start is s; needs chunk_match.
void chunk_solve(struct chunk *c, const float *s);
// Sets x from the residuals that an earlier chunk_solve left.
void chunk_recall(struct chunk *c);
// Writes the readings of the value head.
void chunk_output(const struct chunk *c, const float *s);
// Sets next to the state at the chunk's end; next may be s.
void chunk_advance(const struct chunk *c, const float *s, float *next);

// Gradients of a chunk that the value heads of a key head share: sums over them.
struct chunk_gradient {
    float dq[CHUNK * MAX_DIM], dk[CHUNK * MAX_DIM];
    float dqk[CHUNK * CHUNK], dkk[CHUNK * CHUNK];
};

void chunk_gradient_open(const struct chunk *c, struct chunk_gradient *d);
// Takes ds, the gradient of the state at the chunk's end, back to its start s, and
// adds the gradients of v, g, beta; to be called after chunk_recall. unused says that
// nothing goes on from the chunk's end: ds is zero.
void chunk_backward(struct chunk *c, struct chunk_gradient *d, const float *s, float *ds, int unused);
// Adds the shared gradients to those of q and k.
void chunk_gradient_close(const struct chunk *c, struct chunk_gradient *d);

#endif
