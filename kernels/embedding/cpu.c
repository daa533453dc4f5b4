#include "embedding.h"

#include "vector.h"

enum { COLUMNS = 64 };  // of a task in the backward pass

static void forward_rows(void *arg, int task) {
    const struct embedding *a = arg;
    for (int r = task * ROW_BLOCK; r < row_end(a->rows, task); r++)
        memcpy(a->y.data + r * a->y.stride, a->table.data + a->ids[r] * a->table.stride, a->cols * sizeof(float));
}

// Rows that share an id add to the same row of the table. Every task takes all rows
// in order, but only some of the columns: so no two tasks meet, and no sum changes
// its order.
CPU_CLONES
static void backward_columns(void *arg, int task) {
    const struct embedding *a = arg;
    const int from = task * COLUMNS, left = a->cols - from, n = left < COLUMNS ? left : COLUMNS;
    for (int r = 0; r < a->rows; r++) {
        float *to = a->dtable.data + a->ids[r] * a->dtable.stride + from;
        const float *d = a->dy.data + r * a->dy.stride + from;
        for (int j = 0; j < n; j += LANES) add_to(to + j, n - j, load(d + j, n - j));
    }
}

void embedding_forward(struct cpu *cpu, struct embedding a) {
    parallel_for(cpu, forward_rows, &a, row_blocks(a.rows));
}

void embedding_backward(struct cpu *cpu, struct embedding a) {
    parallel_for(cpu, backward_columns, &a, (a.cols + COLUMNS - 1) / COLUMNS);
}
