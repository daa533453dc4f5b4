// Steps of sequences that go on from a state. Rows that come as whole chunks go
// through chunk.c. A single row joins an open chunk: it is the next row of the
// triangular system that chunk.h describes, which needs the state at the chunk's start
// and what the chunk's earlier rows wrote. The state is read once, for key and query
// together, and written once per chunk.
#include "decode.h"

#include <string.h>

#include "chunk.h"
#include "rows.h"
#include "vector.h"

enum { COLUMNS = 64 }; // of a state that are in registers

// One step under one key head.
struct step {
    const struct deltarule_decode *d;
    int n, key_head, heads; // step number; heads: value heads of the key head
};

static float *state_of(const struct step *s, int number, int j) {
    const struct deltarule *a = &s->d->rule;
    return s->d->states + ((long)number * a->value_heads + s->key_head * s->heads + j) * a->key_dim * a->value_dim;
}

static void take_chunks(const struct step *s) {
    const struct deltarule *a = &s->d->rule;
    int start = s->d->start[s->n], len = s->d->len[s->n], from = s->d->from[s->n], to = s->d->to[s->n];
    struct chunk c;
    if (from < 0) memset(state_of(s, from = to, 0), 0, sizeof(float) * s->heads * a->key_dim * a->value_dim);
    for (int i = 0; i < len; i += CHUNK, from = to) {
        chunk_open(&c, a, start + i, len - i < CHUNK ? len - i : CHUNK, s->key_head);
        chunk_match(&c);
        for (int j = 0; j < s->heads; j++) {
            float *state = state_of(s, from, j);
            chunk_turn(&c, s->key_head * s->heads + j);
            chunk_solve(&c, state);
            chunk_output(&c, state);
            chunk_advance(&c, state, state_of(s, to, j));
        }
    }
}

// The open chunk of a step: its `filled` earlier rows, and then the new one.
struct open {
    int row, filled;
    const float *q, *k;              // of the new row
    float *keys;                     // of all, [KeyDim x CHUNK]
    float kk[CHUNK], qk[CHUNK];      // products of the new key and query with each key
    float gamma, decay[CHUNK];       // exp(G_m), exp(G_m - G_j)
    float u[MAX_DIM], w[MAX_DIM];    // the new key's and query's products with the state
};

// Stores the key of the new row and multiplies it and the query with all keys.
VECTOR_INLINE void match(const struct step *s, struct open *o) {
    const struct deltarule *a = &s->d->rule;
    int d = a->key_dim;
    o->row = s->d->start[s->n], o->filled = s->d->filled[s->n];
    o->q = a->q.data + o->row * a->q.stride + s->key_head * d;
    o->k = a->k.data + o->row * a->k.stride + s->key_head * d;
    o->keys = s->d->keys + ((long)s->d->open[s->n] * a->key_heads + s->key_head) * d * CHUNK;
    vec kk[CHUNK / LANES] = {0}, qk[CHUNK / LANES] = {0};
    for (int p = 0; p < d; p++) {
        float *keys = o->keys + p * CHUNK;
        keys[o->filled] = o->k[p];
#pragma GCC unroll 4
        for (int i = 0; i < CHUNK / LANES; i++) {
            vec key = load(keys + i * LANES, LANES);
            kk[i] += o->k[p] * key;
            qk[i] += o->q[p] * key;
        }
    }
    for (int i = 0; i < CHUNK / LANES; i++) store(o->kk + i * LANES, LANES, kk[i]), store(o->qk + i * LANES, LANES, qk[i]);
}

VECTOR_INLINE void fill_decays(struct open *o, const float *g) {
    double total[CHUNK], sum = 0;
    for (int j = 0; j <= o->filled; j++) total[j] = sum += g[j];
    for (int j = 0; j < CHUNK; j++) o->decay[j] = j <= o->filled ? sum - total[j] : 0;
    for (int j = 0; j < CHUNK; j += LANES) store(o->decay + j, LANES, exp_vec(load(o->decay + j, LANES)));
    o->gamma = expf(sum);
}

// u = S^T k and w = S^T q.
VECTOR_INLINE void read_state(const struct deltarule *a, struct open *o, const float *state) {
    int dim = a->value_dim;
    for (int c = 0; c < dim; c += COLUMNS) {
        vec u[COLUMNS / LANES] = {0}, w[COLUMNS / LANES] = {0};
        int left = dim - c, vectors = left < COLUMNS ? (left + LANES - 1) / LANES : COLUMNS / LANES;
        for (int p = 0; p < a->key_dim; p++)
            if (left >= COLUMNS)
#pragma GCC unroll 4
                for (int i = 0; i < COLUMNS / LANES; i++) {
                    vec x = load(state + p * dim + c + i * LANES, LANES);
                    u[i] += o->k[p] * x;
                    w[i] += o->q[p] * x;
                }
            else
                for (int i = 0; i < vectors; i++) {
                    vec x = load(state + p * dim + c + i * LANES, left - i * LANES);
                    u[i] += o->k[p] * x;
                    w[i] += o->q[p] * x;
                }
        for (int i = 0; i < vectors; i++) store(o->u + c + i * LANES, left - i * LANES, u[i]), store(o->w + c + i * LANES, left - i * LANES, w[i]);
    }
}

// The state at the end of a full chunk.
VECTOR_INLINE void advance(const struct deltarule *a, const struct open *o, const float *writes, const float *state, float *next) {
    int dim = a->value_dim;
    float kept[CHUNK * MAX_DIM];
    for (int j = 0; j < CHUNK; j++) scale_row(kept + j * dim, o->decay[j], writes + j * dim, dim);
    scale_row(next, o->gamma, state, a->key_dim * dim);
    a->cpu->gemm_serial(0, 0, a->key_dim, dim, CHUNK, o->keys, CHUNK, kept, dim, next, dim, 1);
}

CPU_CLONES
static void join_chunk(const struct step *s) {
    const struct deltarule *a = &s->d->rule;
    int dim = a->value_dim;
    float scale = 1 / sqrtf(a->key_dim), f[CHUNK];
    struct open o;
    match(s, &o);
    for (int j = 0; j < s->heads; j++) {
        int head = s->key_head * s->heads + j, m = o.filled;
        long at = (long)s->d->open[s->n] * a->value_heads + head;
        float *decays = s->d->decays + at * CHUNK, *writes = s->d->writes + at * CHUNK * dim, *r = writes + m * dim;
        const float *v = a->v.data + o.row * a->v.stride + head * dim, *state = state_of(s, s->d->from[s->n], j);
        float *y = a->out.data + o.row * a->out.stride + head * dim;
        decays[m] = a->g.data[o.row * a->g.stride + head];
        fill_decays(&o, decays);
        read_state(a, &o, state);
        for (int c = 0; c < dim; c++) r[c] = v[c] - o.gamma * o.u[c];
        for (int i = 0; i < m; i++) f[i] = -o.kk[i] * o.decay[i];
        add_rows(r, f, m, writes, dim, dim);
        scale_row(r, a->beta.data[o.row * a->beta.stride + head], r, dim);
        scale_row(y, scale * o.gamma, o.w, dim);
        for (int i = 0; i <= m; i++) f[i] = scale * o.qk[i] * o.decay[i];
        add_rows(y, f, m + 1, writes, dim, dim);
        if (m == CHUNK - 1) advance(a, &o, writes, state, state_of(s, s->d->to[s->n], j));
    }
}

// A task is a step under one key head.
static void decode_task(void *arg, int task) {
    const struct deltarule_decode *d = arg;
    const struct deltarule *a = &d->rule;
    struct step s = {d, task / a->key_heads, task % a->key_heads, a->value_heads / a->key_heads};
    if (d->open[s.n] < 0)
        take_chunks(&s);
    else
        join_chunk(&s);
}

void deltarule_decode(struct deltarule_decode d) { parallel_for(d.rule.cpu, decode_task, &d, d.steps * d.rule.key_heads); }
