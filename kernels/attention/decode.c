// Attention of new tokens over a cache of blocks, with a running softmax.
//
// Each row walks its blocks from its own towards the start of the sequence, like
// cpu.c. The rows of a bundle walk apart through the blocks that only some of them
// have, then together through those that they share: there a block is read once for
// all of them. Up to four (row, query head) pairs are in registers at a time; how
// pairs are grouped changes no sum, so a row's bits do not depend on its company.
#include "decode.h"
#include "vector.h"

enum {
    MAX_PAIRS = 128, // of a part of a bundle
    GROUP = 4,       // pairs in registers
    COLUMNS = 64,    // of values in registers
};

static int at_most(int n, int limit) { return n < limit ? n : limit; }

static int32_t block_of(const struct attention_decode *a, int row, int position) {
    return a->blocks[a->table[row] + position / BLOCK_LEN];
}

static float *keys_of(const struct attention_decode *a, int32_t block, int head) {
    return a->keys + ((long)block * a->kv_heads + head) * a->dim * BLOCK_LEN;
}

static float *values_of(const struct attention_decode *a, int32_t block, int head) {
    return a->values + ((long)block * a->kv_heads + head) * BLOCK_LEN * a->dim;
}

static void store_task(void *arg, int task) {
    const struct attention_decode *a = arg;
    int d = a->dim;
    for (int row = task * ROW_BLOCK; row < row_end(a->rows, task); row++)
        for (int h = 0; h < a->kv_heads; h++) {
            int32_t block = block_of(a, row, a->position[row]);
            int at = a->position[row] % BLOCK_LEN;
            float *keys = keys_of(a, block, h);
            const float *k = a->k.data + row * a->k.stride + h * d;
            for (int c = 0; c < d; c++) keys[c * BLOCK_LEN + at] = k[c];
            memcpy(values_of(a, block, h) + at * d, a->v.data + row * a->v.stride + h * d, sizeof(float) * d);
        }
}

// Rows [row, row + rows) of a bundle under one key head. Pair m is row m/group, query
// head key_head*group + m%group. o is the sum of values so far, weighted by
// exp(score - top), and total the sum of these weights.
struct part {
    const struct attention_decode *a;
    int row, rows, group, key_head;
    float q[MAX_PAIRS * MAX_DIM], o[MAX_PAIRS * MAX_DIM];
    float top[MAX_PAIRS], total[MAX_PAIRS];
};

// The scores of n pairs in a block of keys.
VECTOR_INLINE void score(int n, const float *q, int d, const float *keys, float s[][BLOCK_LEN]) {
    vec sum[GROUP][BLOCK_LEN / LANES] = {0};
    for (int p = 0; p < d; p++, keys += BLOCK_LEN)
#pragma GCC unroll 4
        for (int m = 0; m < n; m++)
#pragma GCC unroll 4
            for (int j = 0; j < BLOCK_LEN / LANES; j++) sum[m][j] += q[m * d + p] * load(keys + j * LANES, LANES);
#pragma GCC unroll 4
    for (int m = 0; m < n; m++)
#pragma GCC unroll 4
        for (int j = 0; j < BLOCK_LEN / LANES; j++) store(s[m] + j * LANES, LANES, sum[m][j]);
}

// Turns the scores of the first `seen` keys into weights, and those of the others into
// 0. Returns what all sums before must be scaled by.
VECTOR_INLINE float soften(float *s, int seen, float *top, float *total) {
    vec high = splat(-INFINITY), added = {0};
    for (int j = seen; j < BLOCK_LEN; j++) s[j] = -INFINITY;
    for (int j = 0; j < BLOCK_LEN; j += LANES) high = maximum(load(s + j, LANES), high);
    float before = *top;
    for (int l = 0; l < LANES; l++) *top = high[l] > *top ? high[l] : *top;
    for (int j = 0; j < BLOCK_LEN; j += LANES) {
        vec p = exp_vec(load(s + j, LANES) - splat(*top));
        store(s + j, LANES, p);
        added += p;
    }
    float shrink = expf(before - *top);
    *total = *total * shrink + sum(added);
    return shrink;
}

// o = shrink o + s times the first `seen` rows of values, for n pairs.
VECTOR_INLINE void gather(int n, float *o, int d, const float *values, int seen, float s[][BLOCK_LEN],
                          const float *shrink) {
    for (int c = 0; c < d; c += COLUMNS) {
        int vectors = (at_most(COLUMNS, d - c) + LANES - 1) / LANES;
        vec sum[GROUP][COLUMNS / LANES] = {0};
        if (d - c >= COLUMNS)
            for (int j = 0; j < seen; j++)
#pragma GCC unroll 4
                for (int m = 0; m < n; m++)
#pragma GCC unroll 4
                    for (int i = 0; i < COLUMNS / LANES; i++)
                        sum[m][i] += s[m][j] * load(values + j * d + c + i * LANES, LANES);
        else
            for (int j = 0; j < seen; j++)
                for (int m = 0; m < n; m++)
                    for (int i = 0; i < vectors; i++)
                        sum[m][i] += s[m][j] * load(values + j * d + c + i * LANES, d - c - i * LANES);
        for (int m = 0; m < n; m++)
            for (int i = 0; i < vectors; i++) {
                int left = d - c - i * LANES;
                float *to = o + m * d + c + i * LANES;
                store(to, left, shrink[m] * load(to, left) + sum[m][i]);
            }
    }
}

VECTOR_INLINE void attend(int n, struct part *b, int m, const float *keys, const float *values, int seen) {
    float s[GROUP][BLOCK_LEN], shrink[GROUP];
    int d = b->a->dim;
    score(n, b->q + m * d, d, keys, s);
    for (int i = 0; i < n; i++) shrink[i] = soften(s[i], seen, &b->top[m + i], &b->total[m + i]);
    gather(n, b->o + m * d, d, values, seen, s, shrink);
}

// Takes pairs [from, to) through the first `seen` positions of a block.
CPU_CLONES
static void attend_block(struct part *b, int from, int to, int32_t block, int seen) {
    const float *keys = keys_of(b->a, block, b->key_head), *values = values_of(b->a, block, b->key_head);
    for (int m = from; m < to; m += GROUP) switch (at_most(to - m, GROUP)) {
        case 1: attend(1, b, m, keys, values, seen); break;
        case 2: attend(2, b, m, keys, values, seen); break;
        case 3: attend(3, b, m, keys, values, seen); break;
        default: attend(4, b, m, keys, values, seen);
        }
}

CPU_CLONES
static void open_part(struct part *b) {
    const struct attention_decode *a = b->a;
    int d = a->dim, width = b->group * d;
    float scale = 1 / sqrtf(d);
    for (int r = 0; r < b->rows; r++) {
        const float *q = a->q.data + (b->row + r) * a->q.stride + b->key_head * width;
        for (int c = 0; c < width; c++) b->q[r * width + c] = scale * q[c];
    }
    memset(b->o, 0, sizeof(float) * b->rows * width);
    for (int m = 0; m < b->rows * b->group; m++) b->top[m] = -INFINITY, b->total[m] = 0;
}

CPU_CLONES
static void close_part(const struct part *b) {
    const struct attention_decode *a = b->a;
    int d = a->dim;
    for (int m = 0; m < b->rows * b->group; m++) {
        int row = b->row + m / b->group, head = b->key_head * b->group + m % b->group;
        float *y = a->y.data + row * a->y.stride + head * d;
        for (int c = 0; c < d; c++) y[c] = b->o[m * d + c] / b->total[m];
        if (!a->gate.data) continue;
        const float *z = a->gate.data + row * a->gate.stride + head * (long)a->gate_stride + a->gate_offset;
        for (int c = 0; c < d; c += LANES) store(y + c, d - c, load(y + c, d - c) * sigmoid(load(z + c, d - c)));
    }
}

static void decode_part(struct part *b, int shared) {
    const struct attention_decode *a = b->a;
    int g = b->group;
    open_part(b);
    for (int r = 0; r < b->rows; r++) {
        int position = a->position[b->row + r], own = position / BLOCK_LEN;
        for (int i = own; i >= shared; i--)
            attend_block(b, r * g, r * g + g, block_of(a, b->row + r, i * BLOCK_LEN),
                         i == own ? position % BLOCK_LEN + 1 : BLOCK_LEN);
    }
    for (int i = shared - 1; i >= 0; i--)
        attend_block(b, 0, b->rows * g, block_of(a, b->row, i * BLOCK_LEN), BLOCK_LEN);
    close_part(b);
}

// A task is a bundle under one key head.
static void decode_task(void *arg, int task) {
    const struct attention_decode *a = arg;
    int bundle = task / a->kv_heads, group = a->heads / a->kv_heads, most = MAX_PAIRS / group;
    int end = bundle + 1 < a->bundles ? a->first[bundle + 1] : a->rows;
    for (int row = a->first[bundle]; row < end; row += most) {
        struct part b; // too large to be cleared for nothing
        b.a = a, b.row = row, b.rows = at_most(most, end - row), b.group = group, b.key_head = task % a->kv_heads;
        decode_part(&b, a->shared[bundle]);
    }
}

void attention_decode(struct attention_decode a) {
    parallel_for(a.cpu, store_task, &a, row_blocks(a.rows));
    parallel_for(a.cpu, decode_task, &a, a.bundles * a.kv_heads);
}
