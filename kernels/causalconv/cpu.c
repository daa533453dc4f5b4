// Forward, rows are independent. Backward, a task owns a block of channels and walks all
// rows in order: so the gradient of a row that several children continue, and that of
// the weights, are sums in a fixed order without any partial result. The convolution is
// cheaper to compute again in the backward pass than to keep.
#include "causalconv.h"
#include "vector.h"

enum {
    ROWS = 64,   // of a task forward, CHANNELS at a time
    CHANNELS = 128,
    AHEAD = 6,   // rows stand far apart: the processor does not see by itself which comes next
};

static int min(int a, int b) { return a < b ? a : b; }

VECTOR_INLINE float *at(struct matrix x, int row, int column) { return x.data + row * x.stride + column; }

// The row before row on its path, or -1.
static int previous(const struct causalconv *a, int row) {
    int s = a->segment[row], p = a->parent[s];
    if (row > a->start[s]) return row - 1;
    return p < 0 ? -1 : a->start[p] + a->len[p] - 1;
}

// The rows that the taps of a row read; -1 before the sequence's start.
struct window {
    int row[MAX_TAPS];
};

// Moves w to row, which follows the row that it was at, if that was anywhere.
static void move_to(const struct causalconv *a, struct window *w, int row, int follows) {
    if (follows && row > a->start[a->segment[row]]) {
        for (int j = 1; j < a->taps; j++) w->row[j - 1] = w->row[j];
        w->row[a->taps - 1] = row;
        return;
    }
    for (int j = a->taps - 1; j >= 0; j--) {
        w->row[j] = row;
        if (row >= 0) row = previous(a, row);
    }
}

// The weights of a block of channels, tap by tap; zero beyond the last channel.
struct weights {
    float tap[MAX_TAPS][CHANNELS];
};

VECTOR_INLINE void load_weights(const struct causalconv *a, int from, int n, struct weights *w) {
    for (int j = 0; j < a->taps; j++)
        for (int c = 0; c < CHANNELS; c++) w->tap[j][c] = c < n ? a->w.data[(from + c) * a->w.stride + j] : 0;
}

static const float nothing[CHANNELS]; // stands for the rows before a sequence's start

// Where the taps of a row read, for the block of channels that starts at column.
VECTOR_INLINE void find_inputs(const struct causalconv *a, const struct window *w, const int taps, int column,
                               const float *x[]) {
    for (int j = 0; j < taps; j++) x[j] = w->row[j] < 0 ? nothing : at(a->x, w->row[j], column);
}

VECTOR_INLINE vec convolve(const struct weights *w, const int taps, const float *const x[], int c, int n) {
    vec sum = {0};
    for (int j = 0; j < taps; j++) sum += load(w->tap[j] + c, LANES) * load(x[j] + c, n - c);
    return sum;
}

VECTOR_INLINE void forward_rows(const struct causalconv *a, int task, const int taps) {
    int first = task * ROWS, last = min(first + ROWS, a->rows);
    struct weights w;
    for (int column = 0; column < a->channels; column += CHANNELS) {
        int n = min(CHANNELS, a->channels - column);
        struct window window;
        load_weights(a, column, n, &w);
        for (int row = first; row < last; row++) {
            const float *x[MAX_TAPS];
            move_to(a, &window, row, row > first);
            find_inputs(a, &window, taps, column, x);
            float *y = at(a->y, row, column);
            for (int c = 0; c < n; c += LANES) store(y + c, n - c, silu(convolve(&w, taps, x, c, n)));
        }
    }
}

// Four taps, which all models have, are a constant for the compiler.
CPU_CLONES
static void forward_task(void *arg, int task) {
    const struct causalconv *a = arg;
    if (a->taps == 4) forward_rows(a, task, 4);
    else forward_rows(a, task, a->taps);
}

VECTOR_INLINE void backward_channels(const struct causalconv *a, int task, const int taps) {
    int column = task * CHANNELS, n = min(CHANNELS, a->channels - column);
    struct weights w, dw = {0};
    struct window window;
    float unwanted[CHANNELS] = {0};
    load_weights(a, column, n, &w);
    for (int row = 0; row < a->rows; row++) {
        const float *x[MAX_TAPS], *dy = at(a->dy, row, column);
        float *dx[MAX_TAPS];
        move_to(a, &window, row, row > 0);
        find_inputs(a, &window, taps, column, x);
        for (int j = 0; j < taps; j++)
            dx[j] = a->dx.data && window.row[j] >= 0 ? at(a->dx, window.row[j], column) : unwanted;
        if (row + AHEAD < a->rows)
            for (int c = 0; c < n; c += LANES) {
                __builtin_prefetch(at(a->x, row + AHEAD, column) + c);
                __builtin_prefetch(at(a->dy, row + AHEAD, column) + c);
                if (a->dx.data) __builtin_prefetch(at(a->dx, row + AHEAD, column) + c, 1);
            }
        for (int c = 0; c < n; c += LANES) {
            vec p = load(dy + c, n - c) * silu_slope(convolve(&w, taps, x, c, n));
            for (int j = 0; j < taps; j++) {
                struct matrix own = {.fresh = a->dx.fresh && j == taps - 1}; // comes first of a row's contributions
                add_to(dw.tap[j] + c, LANES, p * load(x[j] + c, n - c));
                give(own, dx[j] + c, n - c, load(w.tap[j] + c, LANES) * p);
            }
        }
    }
    if (!a->dw.data) return;
    for (int j = 0; j < taps; j++)
        for (int c = 0; c < n; c++) a->dw.data[(column + c) * a->dw.stride + j] += dw.tap[j][c];
}

CPU_CLONES
static void backward_task(void *arg, int task) {
    const struct causalconv *a = arg;
    if (a->taps == 4) backward_channels(a, task, 4);
    else backward_channels(a, task, a->taps);
}

void causalconv_forward(struct cpu *cpu, struct causalconv a) {
    parallel_for(cpu, forward_task, &a, (a.rows + ROWS - 1) / ROWS);
}

void causalconv_backward(struct cpu *cpu, struct causalconv a) {
    parallel_for(cpu, backward_task, &a, (a.channels + CHANNELS - 1) / CHANNELS);
}
