// A task owns a block of channels and walks all rows in order. So the gradient of
// a row that several children continue, and that of the weights, are sums in a
// fixed order without any partial result. The convolution is cheaper to compute
// again in the backward pass than to keep.
#include "causalconv.h"
#include "vector.h"

enum { BLOCK = 64 };

// The rows that the taps of the current row read; -1 before the sequence's start.
struct window {
    int row[MAX_TAPS];
};

VECTOR_INLINE void enter_segment(const struct causalconv *a, int s, struct window *w) {
    int p = a->parent[s], last = p < 0 ? -1 : a->len[p] - 1;
    for (int j = a->taps - 1; j >= 1; j--) { // shifted once more by advance
        w->row[j] = p < 0 ? -1 : a->start[p] + last;
        if (p >= 0 && --last < 0) {
            p = a->parent[p];
            last = p < 0 ? -1 : a->len[p] - 1;
        }
    }
}

VECTOR_INLINE void advance(const struct causalconv *a, int row, struct window *w) {
    for (int j = 1; j < a->taps; j++) w->row[j - 1] = w->row[j];
    w->row[a->taps - 1] = row;
}

VECTOR_INLINE float *at(struct matrix x, int row, int column) { return x.data + row * x.stride + column; }

// The weights of the block's channels, tap by tap; zero beyond the last channel.
struct weights {
    float tap[MAX_TAPS][BLOCK];
};

VECTOR_INLINE void load_weights(const struct causalconv *a, int from, int n, struct weights *w) {
    for (int j = 0; j < a->taps; j++)
        for (int c = 0; c < BLOCK; c++) w->tap[j][c] = c < n ? a->w.data[(from + c) * a->w.stride + j] : 0;
}

VECTOR_INLINE void convolve(const struct causalconv *a, const struct window *win, const struct weights *w,
                            int from, int n, float *p) {
    for (int c = 0; c < n; c += LANES) {
        vec sum = {0};
        for (int j = 0; j < a->taps; j++)
            if (win->row[j] >= 0)
                sum += load(w->tap[j] + c, LANES) * load(at(a->x, win->row[j], from) + c, n - c);
        store(p + c, LANES, sum);
    }
}

VECTOR_INLINE int block_width(const struct causalconv *a, int from) {
    return a->channels - from < BLOCK ? a->channels - from : BLOCK;
}

CPU_CLONES
static void forward_block(void *arg, int task) {
    const struct causalconv *a = arg;
    int from = task * BLOCK, n = block_width(a, from);
    struct weights w;
    struct window win;
    float p[BLOCK];
    load_weights(a, from, n, &w);
    for (int s = 0; s < a->segments; s++) {
        enter_segment(a, s, &win);
        for (int t = a->start[s]; t < a->start[s] + a->len[s]; t++) {
            advance(a, t, &win);
            convolve(a, &win, &w, from, n, p);
            float *y = at(a->y, t, from);
            for (int c = 0; c < n; c += LANES) store(y + c, n - c, silu(load(p + c, LANES)));
        }
    }
}

CPU_CLONES
static void backward_block(void *arg, int task) {
    const struct causalconv *a = arg;
    int from = task * BLOCK, n = block_width(a, from);
    struct weights w, dw = {0};
    struct window win;
    float p[BLOCK];
    load_weights(a, from, n, &w);
    for (int s = 0; s < a->segments; s++) {
        enter_segment(a, s, &win);
        for (int t = a->start[s]; t < a->start[s] + a->len[s]; t++) {
            advance(a, t, &win);
            convolve(a, &win, &w, from, n, p);
            const float *dy = at(a->dy, t, from);
            for (int c = 0; c < n; c += LANES)
                store(p + c, LANES, load(dy + c, n - c) * silu_slope(load(p + c, LANES)));
            for (int j = 0; j < a->taps; j++) {
                if (win.row[j] < 0) continue;
                const float *x = at(a->x, win.row[j], from);
                for (int c = 0; c < n; c += LANES)
                    add_to(dw.tap[j] + c, LANES, load(p + c, LANES) * load(x + c, n - c));
                if (!a->dx.data) continue;
                float *dx = at(a->dx, win.row[j], from);
                struct matrix first = {.fresh = a->dx.fresh && j == a->taps - 1}; // a row's own tap comes first
                for (int c = 0; c < n; c += LANES)
                    give(first, dx + c, n - c, load(w.tap[j] + c, LANES) * load(p + c, LANES));
            }
        }
    }
    if (!a->dw.data) return;
    for (int j = 0; j < a->taps; j++)
        for (int c = 0; c < n; c++) a->dw.data[(from + c) * a->dw.stride + j] += dw.tap[j][c];
}

static int blocks(const struct causalconv *a) { return (a->channels + BLOCK - 1) / BLOCK; }

void causalconv_forward(struct cpu *cpu, struct causalconv a) {
    parallel_for(cpu, forward_block, &a, blocks(&a));
}

void causalconv_backward(struct cpu *cpu, struct causalconv a) {
    parallel_for(cpu, backward_block, &a, blocks(&a));
}
