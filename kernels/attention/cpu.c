// Blocked attention with a running softmax (Dao et al. 2022, arXiv 2205.14135) over
// a prefix tree.
//
// Keys are taken in tiles of TILE positions along the path, aligned to multiples of
// TILE from the start of the sequence. So how a row is computed depends on its path
// alone, not on how the path is cut into segments: the bits of a row are the same in
// a tree and in its sequence alone. Rows are taken in blocks within one segment and
// one tile. All of them see every tile before their own in full; only in their own
// tile do they differ.
//
// The walk goes from the block's own tile towards the root, which needs no list of
// ancestors.
#include "attention.h"
#include "product.h"
#include "rows.h"

enum {
    TILE = 64,       // keys in a tile
    MAX_ROWS = 128,  // (row, query head) pairs in a block
};

static int group(const struct attention *a) { return a->heads / a->kv_heads; }

// Rows of a block: a power of two, so that blocks never cross a tile.
static int block_rows(const struct attention *a) {
    int n = TILE;
    while (n > 1 && n * group(a) > MAX_ROWS) n /= 2;
    return n;
}

// A block starts with its segment, and where the position is a multiple of the
// block's size.
static int block_length(const struct attention *a, int row) {
    int s = a->segment[row], size = block_rows(a), p = a->position[row];
    if (row > a->start[s] && p % size) return 0;
    int to_border = size - p % size, to_end = a->start[s] + a->len[s] - row;
    return to_border < to_end ? to_border : to_end;
}

// A tile of keys: its rows in up to TILE pieces, one per segment that it touches.
struct tile {
    int keys, pieces;
    struct {
        int row, at, rows;
    } piece[TILE];
};

// Cuts positions [first, first + keys) out of the path that ends in *segment, and
// moves *segment up to the one that holds position first-1.
static void cut_tile(const struct attention *a, int *segment, int first, int keys, struct tile *t) {
    t->keys = keys;
    t->pieces = 0;
    for (int s = *segment, end = first + keys;;) {
        int begin = a->pos[s] > first ? a->pos[s] : first;
        t->piece[t->pieces].row = a->start[s] + begin - a->pos[s];
        t->piece[t->pieces].at = begin - first;
        t->piece[t->pieces].rows = end - begin;
        t->pieces++;
        if (a->pos[s] == begin) s = a->parent[s];
        end = begin;
        if (end == first) {
            *segment = s;
            return;
        }
    }
}

// The keys (or values) of one head in a tile: in place where the tile is whole and
// lies in one segment, else copied to buffer and filled up with zeros.
static struct matrix load_tile(struct matrix x, int column, int dim, const struct tile *t, float *buffer) {
    if (t->pieces == 1 && t->keys == TILE)
        return (struct matrix){x.data + t->piece[0].row * x.stride + column, x.stride};
    memset(buffer + t->keys * dim, 0, sizeof(float) * (TILE - t->keys) * dim);
    for (int i = 0; i < t->pieces; i++)
        for (int r = 0; r < t->piece[i].rows; r++)
            memcpy(buffer + (t->piece[i].at + r) * dim, x.data + (t->piece[i].row + r) * x.stride + column,
                   sizeof(float) * dim);
    return (struct matrix){buffer, dim};
}

VECTOR_INLINE void add_tile(struct matrix x, int column, int dim, const struct tile *t, const float *buffer) {
    for (int i = 0; i < t->pieces; i++)
        for (int r = 0; r < t->piece[i].rows; r++) {
            long row = t->piece[i].row + r;
            add_row(x.data + row * x.stride + column, buffer + (t->piece[i].at + r) * dim, dim);
        }
}

// One block of rows under one key head. Pair m is row first + m/group, query head
// key_head*group + m%group: the order in which q stores them.
struct block {
    int first, rows, pairs, group, dim, key_head, column; // column: of the key head in k and v
    int tile;                                             // position of the first key of its own tile
    float scale;
};

static struct block block_at(const struct attention *a, int row, int rows, int key_head) {
    int g = group(a), d = a->dim;
    return (struct block){row, rows, rows * g, g, d, key_head, key_head * d,
                          a->position[row] / TILE * TILE, 1 / sqrtf(d)};
}

static float *pair(struct matrix x, const struct block *b, int m) {
    return x.data + (b->first + m / b->group) * x.stride + (b->key_head * b->group + m % b->group) * (long)b->dim;
}

static float *gate_of(const struct attention *a, struct matrix x, const struct block *b, int m) {
    int head = b->key_head * b->group + m % b->group;
    return x.data + (b->first + m / b->group) * x.stride + head * (long)a->gate_stride + a->gate_offset;
}

// Keys of its own tile that pair m sees.
static int visible(const struct attention *a, const struct block *b, int m) {
    return a->position[b->first] + m / b->group - b->tile + 1;
}

VECTOR_INLINE void load_scaled_queries(const struct attention *a, const struct block *b, float *q) {
    for (int m = 0; m < b->pairs; m++) {
        scale_row(q + m * b->dim, b->scale, pair(a->q, b, m), b->dim);
    }
}

// Replaces the scores s of a tile by exp(s - top) and adds them to total, where top
// is the running maximum. Returns what everything added before must be scaled by.
VECTOR_INLINE float soften(float *s, float *top, float *total) {
    vec high = load(s, LANES), added = {0};
    float before = *top;
    for (int j = LANES; j < TILE; j += LANES) high = maximum(load(s + j, LANES), high);
    for (int l = 0; l < LANES; l++) *top = high[l] > *top ? high[l] : *top;
    for (int j = 0; j < TILE; j++) s[j] -= *top;
    for (int j = 0; j < TILE; j += LANES) {
        vec p = exp_vec(load(s + j, LANES));
        store(s + j, LANES, p);
        added += p;
    }
    float shrink = expf(before - *top);
    *total = *total * shrink + sum(added);
    return shrink;
}

CPU_CLONES
static void forward_block(const struct attention *a, int row, int rows, int key_head) {
    struct block b = block_at(a, row, rows, key_head);
    struct tile tile;
    float q[MAX_ROWS * MAX_DIM], o[MAX_ROWS * MAX_DIM], s[MAX_ROWS * TILE];
    float keys[TILE * MAX_DIM], values[TILE * MAX_DIM], turned[MAX_DIM * TILE];
    float top[MAX_ROWS], total[MAX_ROWS];
    int d = b.dim, segment = a->segment[row];
    load_scaled_queries(a, &b, q);

    // Its own tile, row by row: a row must not touch the values of later tokens.
    cut_tile(a, &segment, b.tile, a->position[row] + rows - b.tile, &tile);
    struct matrix k = load_tile(a->k, b.column, d, &tile, keys);
    struct matrix v = load_tile(a->v, b.column, d, &tile, values);
    transpose(turned, TILE, k.data, k.stride, TILE, d);
    product(b.pairs, TILE, d, plain(q, d), turned, TILE, s, TILE, 0);
    for (int m = 0; m < b.pairs; m++) {
        int seen = visible(a, &b, m);
        for (int j = seen; j < TILE; j++) s[m * TILE + j] = -INFINITY;
        top[m] = -INFINITY, total[m] = 0;
        soften(s + m * TILE, &top[m], &total[m]);
        memset(o + m * d, 0, sizeof(float) * d);
        add_rows(o + m * d, s + m * TILE, seen, v.data, v.stride, d);
    }
    // The tiles before it, as a whole.
    for (int first = b.tile - TILE; first >= 0; first -= TILE) {
        cut_tile(a, &segment, first, TILE, &tile);
        k = load_tile(a->k, b.column, d, &tile, keys);
        v = load_tile(a->v, b.column, d, &tile, values);
        transpose(turned, TILE, k.data, k.stride, TILE, d);
        product(b.pairs, TILE, d, plain(q, d), turned, TILE, s, TILE, 0);
        for (int m = 0; m < b.pairs; m++) {
            float shrink = soften(s + m * TILE, &top[m], &total[m]);
            scale_row(o + m * d, shrink, o + m * d, d);
        }
        product(b.pairs, d, TILE, plain(s, TILE), v.data, v.stride, o, d, 1);
    }
    for (int m = 0; m < b.pairs; m++) {
        float *y = pair(a->y, &b, m);
        scale_row(y, 1 / total[m], o + m * d, d);
        a->lse.data[(row + m / b.group) * a->lse.stride + key_head * b.group + m % b.group] = top[m] + logf(total[m]);
        if (!a->gate.data) continue;
        const float *z = gate_of(a, a->gate, &b, m);
        for (int c = 0; c < d; c += LANES) store(y + c, d - c, load(y + c, d - c) * sigmoid(load(z + c, d - c)));
    }
}

// A task owns the blocks that start among its ROWS rows, under one key head.
enum { TASK_ROWS = 64 };

static void forward_task(void *arg, int task) {
    const struct attention *a = arg;
    int from = task / a->kv_heads * TASK_ROWS, to = from + TASK_ROWS;
    for (int row = from; row < to && row < a->rows; row++) {
        int n = block_length(a, row);
        if (n) forward_block(a, row, n, task % a->kv_heads);
    }
}

void attention_forward(struct attention a) {
    parallel_for(a.cpu, forward_task, &a, (a.rows + TASK_ROWS - 1) / TASK_ROWS * a.kv_heads);
}

// What the backward pass of a block needs from its rows, pair by pair.
struct backward {
    float q[MAX_ROWS * MAX_DIM];  // scaled queries
    float da[MAX_ROWS * MAX_DIM]; // gradient of the ungated output
    float dq[MAX_ROWS * MAX_DIM]; // of the scaled queries
    float row[MAX_ROWS];          // <da, a> = <dy, y>, the softmax's row term
    float lse[MAX_ROWS];
    float p[MAX_ROWS * TILE], dp[MAX_ROWS * TILE];
    float keys[TILE * MAX_DIM], values[TILE * MAX_DIM], sums[TILE * MAX_DIM], turned[MAX_DIM * TILE];
};

// With y = a f, f = sigma(gate): da = dy f and dgate = dy a f (1-f) = dy y (1-f), so
// the ungated output is not needed.
VECTOR_INLINE void load_gradients(const struct attention *a, const struct block *b, struct backward *w) {
    int d = b->dim;
    for (int m = 0; m < b->pairs; m++) {
        const float *dy = pair(a->dy, b, m), *y = pair(a->y, b, m);
        float *da = w->da + m * d;
        w->row[m] = dot(dy, y, d);
        w->lse[m] = a->lse.data[(b->first + m / b->group) * a->lse.stride + b->key_head * b->group + m % b->group];
        if (!a->gate.data) {
            memcpy(da, dy, sizeof(float) * d);
            continue;
        }
        const float *z = gate_of(a, a->gate, b, m);
        for (int c = 0; c < d; c += LANES) store(da + c, d - c, load(dy + c, d - c) * sigmoid(load(z + c, d - c)));
        if (!a->dgate.data) continue;
        float *dz = gate_of(a, a->dgate, b, m);
        for (int c = 0; c < d; c += LANES)
            add_to(dz + c, d - c, load(dy + c, d - c) * load(y + c, d - c) * sigmoid(-load(z + c, d - c)));
    }
}

// Adds left^T right, [keys x dim], to the tile's rows of x; left is [pairs x TILE].
VECTOR_INLINE void add_product(const struct attention *a, const struct block *b, const struct tile *t, const float *left,
                        const float *right, struct matrix x, float *buffer) {
    int d = b->dim;
    if (!x.data) return;
    if (t->pieces == 1) {
        float *to = x.data + t->piece[0].row * x.stride + b->column;
        product(t->keys, d, b->pairs, transposed(left, TILE), right, d, to, x.stride, 1);
        return;
    }
    product(t->keys, d, b->pairs, transposed(left, TILE), right, d, buffer, d, 0);
    add_tile(x, b->column, d, t, buffer);
}

CPU_CLONES
static void backward_block(const struct attention *a, int row, int rows, int key_head) {
    struct block b = block_at(a, row, rows, key_head);
    struct backward w;
    struct tile tile;
    int d = b.dim, segment = a->segment[row], keys = a->position[row] + rows - b.tile;
    load_scaled_queries(a, &b, w.q);
    load_gradients(a, &b, &w);
    memset(w.dq, 0, sizeof(float) * b.pairs * d);
    for (int first = b.tile; first >= 0; first -= TILE, keys = TILE) {
        cut_tile(a, &segment, first, keys, &tile);
        struct matrix k = load_tile(a->k, b.column, d, &tile, w.keys);
        struct matrix v = load_tile(a->v, b.column, d, &tile, w.values);
        transpose(w.turned, TILE, k.data, k.stride, TILE, d);
        product(b.pairs, TILE, d, plain(w.q, d), w.turned, TILE, w.p, TILE, 0);
        transpose(w.turned, TILE, v.data, v.stride, TILE, d);
        product(b.pairs, TILE, d, plain(w.da, d), w.turned, TILE, w.dp, TILE, 0);
        for (int m = 0; m < b.pairs; m++) {
            float *p = w.p + m * TILE, *ds = w.dp + m * TILE;
            int n = first == b.tile ? visible(a, &b, m) : TILE;
            for (int j = n; j < TILE; j++) p[j] = -INFINITY, ds[j] = 0;
            for (int j = 0; j < TILE; j++) p[j] -= w.lse[m];
            for (int j = 0; j < TILE; j += LANES) store(p + j, LANES, exp_vec(load(p + j, LANES)));
            for (int j = 0; j < TILE; j++) ds[j] = p[j] * (ds[j] - w.row[m]);
        }
        product(b.pairs, d, TILE, plain(w.dp, TILE), k.data, k.stride, w.dq, d, 1);
        add_product(a, &b, &tile, w.dp, w.q, a->dk, w.sums);
        add_product(a, &b, &tile, w.p, w.da, a->dv, w.sums);
    }
    if (!a->dq.data) return;
    for (int m = 0; m < b.pairs; m++) {
        float *dq = pair(a->dq, &b, m);
        for (int c = 0; c < d; c += LANES)
            give(a->dq, dq + c, d - c, splat(b.scale) * load(w.dq + m * d + c, d - c));
    }
}

// A task owns one key head of one tree, gradients of queries, keys and values alike,
// and walks the rows in order.
static void backward_task(void *arg, int task) {
    const struct attention *a = arg;
    int tree = task / a->kv_heads, seen = -1;
    for (int s = 0; s < a->segments; s++) {
        seen += a->parent[s] < 0;
        if (seen < tree) continue;
        if (seen > tree) return;
        for (int row = a->start[s], n; row < a->start[s] + a->len[s]; row += n) {
            n = block_length(a, row);
            backward_block(a, row, n, task % a->kv_heads);
        }
    }
}

void attention_backward(struct attention a) {
    int trees = 0;
    for (int s = 0; s < a.segments; s++) trees += a.parent[s] < 0;
    parallel_for(a.cpu, backward_task, &a, trees * a.kv_heads);
}
