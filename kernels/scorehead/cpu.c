#include "scorehead.h"

#include "vector.h"

enum { COLUMNS = 64 };  // of a task in the backward pass

CPU_CLONES
static void forward_rows(void *arg, int task) {
    const struct scorehead *a = arg;
    for (int i = task * ROW_BLOCK; i < row_end(a->count, task); i++)
        for (int l = 0; l < a->labels; l++)
            a->y.data[i * a->y.stride + l] =
                dot(a->hidden.data + a->rows[i] * a->hidden.stride, a->w.data + l * a->w.stride, a->cols);
}

// A row may be scored twice, and all rows share the weights. Every task takes all
// rows in order, but only some of the columns, so no two tasks add to one element.
CPU_CLONES
static void backward_columns(void *arg, int task) {
    const struct scorehead *a = arg;
    const int from = task * COLUMNS, left = a->cols - from, n = left < COLUMNS ? left : COLUMNS;
    for (int i = 0; i < a->count; i++)
        for (int l = 0; l < a->labels; l++) {
            const float d = a->dy.data[i * a->dy.stride + l];
            const float *hidden = a->hidden.data + a->rows[i] * a->hidden.stride + from;
            const float *w = a->w.data + l * a->w.stride + from;
            float *dhidden = a->dhidden.data + a->rows[i] * a->dhidden.stride + from;
            float *dw = a->dw.data + l * a->dw.stride + from;
            for (int j = 0; j < n; j += LANES) {
                if (a->dhidden.data) add_to(dhidden + j, n - j, d * load(w + j, n - j));
                if (a->dw.data) add_to(dw + j, n - j, d * load(hidden + j, n - j));
            }
        }
}

void scorehead_forward(struct cpu *cpu, struct scorehead a) {
    parallel_for(cpu, forward_rows, &a, row_blocks(a.count));
}

void scorehead_backward(struct cpu *cpu, struct scorehead a) {
    parallel_for(cpu, backward_columns, &a, (a.cols + COLUMNS - 1) / COLUMNS);
}
