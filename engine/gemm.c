// Matrix product, C = op(A) op(B) (+ C): blocks, and threads.
//
// The usual construction (Goto and van de Geijn, "Anatomy of high-performance
// matrix multiplication", 2008): blocks of A and B are copied into panels that the
// inner kernel reads front to back. All four transpose forms differ only in the copying.
//
// C is never split along k, and a block of k always begins at a multiple of the same
// number of steps, so an element of C is the same sum in the same order for any number
// of threads, rows and columns. The threads can therefore cut C as they like.
#include "gemm.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// The kernels in use; tests choose others.
static const struct kernel *float32, *bfloat16;
static pthread_key_t workspace_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void) {
    float32 = float32_kernels()[0];
    bfloat16 = bfloat16_kernels()[0];
    pthread_key_create(&workspace_key, free);
}

const struct kernel *gemm_kernel(int narrow, const char *name) {
    pthread_once(&once, init);
    const struct kernel **used = narrow ? &bfloat16 : &float32;
    if (!name) return *used;
    for (const struct kernel *const *x = narrow ? bfloat16_kernels() : float32_kernels(); *x; x++)
        if (!strcmp((*x)->name, name)) return *used = *x;
    return 0;
}

// The calling thread's room for one block of A and one of B: a huge page, where the
// system has them, as the panels lie far apart.
enum { WORKSPACE = 2 << 20 };

static float *workspace(void) {
    float *w = pthread_getspecific(workspace_key);
    if (w) return w;
    void *fresh;
    if (posix_memalign(&fresh, WORKSPACE, WORKSPACE)) {
        fprintf(stderr, "caper: no memory for the %d bytes a matrix product works in\n", WORKSPACE);
        abort();
    }
#if defined(MADV_HUGEPAGE)
    madvise(fresh, WORKSPACE, MADV_HUGEPAGE);
#endif
    pthread_setspecific(workspace_key, fresh);
    return fresh;
}

static int min(int a, int b) { return a < b ? a : b; }

// op(X), where X is stored with `line` floats from row to row.
struct operand {
    const float *data;
    long line;
    int transposed;
};

// op(X) from a row and a column on.
static struct operand from(struct operand x, long row, long col) {
    x.data += x.transposed ? col * x.line + row : row * x.line + col;
    return x;
}

// Units of k in a packed block.
static int units(const struct kernel *with, int k) {
    return (k + with->multiple - 1) / with->multiple * with->multiple / with->pair;
}

static void pack_a(const struct kernel *with, float *panels, struct operand a, int m, int k) {
    (a.transposed ? with->pack_columns : with->pack_rows)(panels, a.data, a.line, m, k);
    if (with->round) with->round(panels, (m + with->rows - 1) / with->rows * (long)with->a_panel);
}

static void pack_b(const struct kernel *with, float *panels, struct operand b, int n, int k) {
    (b.transposed ? with->transpose : with->copy)(panels, b.data, b.line, n, k);
    if (with->round) with->round(panels, (n + with->cols - 1) / with->cols * (long)with->cols * units(with, k));
}

// C += or = one packed block of A (m rows) times one of B (n columns). A panel of A stays
// in the first-level cache while those of B pass by from the second, and C is written
// along its rows, which is kinder to memory than along its columns.
static void multiply(const struct kernel *with, int by_column, int m, int n, int units, const float *a, const float *b,
                     float *c, long ldc, int add) {
    const int rows = with->rows, cols = with->cols;
    for (int i = 0; i < m; i += rows)
        for (int j = 0; j < n; j += cols)
            (by_column ? with->by_column : with->by_row)(min(rows, m - i), units, a + (long)(i / rows) * with->a_panel,
                                                         b + (long)j * units, cols, c + i * ldc + j, ldc, min(cols, n - j), add);
}

// The same for so few rows that a panel of B is read once. Copying B would take longer
// than the product, so it is read in place if the kernel can.
static void multiply_few(const struct kernel *with, int by_column, int m, int n, int k, const float *a, struct operand b,
                         float *panel, float *c, long ldc, int add) {
    int j = 0;
    if (b.transposed && with->few && !by_column)
        for (; j < n; j += 16) with->few(m, k, a, b.data + j * b.line, b.line, c + j, ldc, min(16, n - j), add);
    if (!b.transposed && with->in_place)
        for (; j + with->cols <= n; j += with->cols)
            (by_column ? with->by_column : with->by_row)(m, k, a, b.data + j, b.line, c + j, ldc, with->cols, add);
    for (; j < n; j += with->cols) {
        const int cols = min(with->cols, n - j);
        pack_b(with, panel, from(b, 0, j), cols, k);
        multiply(with, by_column, m, cols, units(with, k), a, panel, c + j, ldc, add);
    }
}

// A product on one thread, with its room for a block of A and one of B.
struct serial {
    const struct kernel *with;
    int m, n, k;
    struct operand a, b;
    float *c;
    long ldc;
    int accumulate;
    float *block_a, *block_b;
};

// Rows [i, i+rows), steps [p, p+steps) and columns [j, j+cols): copies A and multiplies
// it with a block of B.
static void multiply_block(const struct serial *x, int i, int rows, int p, int steps, int j, int cols, const float *block_b) {
    pack_a(x->with, x->block_a, from(x->a, i, p), rows, steps);
    multiply(x->with, x->a.transposed, rows, cols, units(x->with, steps), x->block_a, block_b, x->c + i * x->ldc + j, x->ldc,
             x->accumulate || p > 0);
}

// Few rows, all in one panel of A.
static void few_rows_order(const struct serial *x) {
    for (int p = 0; p < x->k; p += x->with->steps) {
        const int steps = min(x->with->steps, x->k - p);
        pack_a(x->with, x->block_a, from(x->a, 0, p), x->m, steps);
        multiply_few(x->with, x->a.transposed, x->m, x->n, steps, x->block_a, from(x->b, p, 0), x->block_b, x->c, x->ldc,
                     x->accumulate || p > 0);
    }
}

// The whole of B is copied first; then a block of C is done before the next one begins,
// and stays in cache over all steps.
enum { WHOLE_B = 1 << 18 };  // units: 1 MiB

static void rows_first_order(const struct serial *x) {
    const struct kernel *with = x->with;
    const int tall = with->a_panels * with->rows, whole_cols = (x->n + with->cols - 1) / with->cols * with->cols;
    float *block_b = x->block_b;
    for (int p = 0; p < x->k; p += with->steps) {
        const int steps = min(with->steps, x->k - p);
        pack_b(with, block_b, from(x->b, p, 0), x->n, steps);
        block_b += (long)whole_cols * units(with, steps);
    }
    for (int i = 0; i < x->m; i += tall) {
        block_b = x->block_b;
        for (int p = 0; p < x->k; p += with->steps) {
            const int steps = min(with->steps, x->k - p);
            multiply_block(x, i, min(tall, x->m - i), p, steps, 0, x->n, block_b);
            block_b += (long)whole_cols * units(with, steps);
        }
    }
}

// A block of B is used for all rows before the next one is copied. That is also better
// for an A whose rows are stored as columns: it is read in wide strips.
static void steps_first_order(const struct serial *x) {
    const int tall = x->with->a_panels * x->with->rows, wide = x->with->b_panels * x->with->cols;
    for (int j = 0; j < x->n; j += wide)
        for (int p = 0; p < x->k; p += x->with->steps) {
            const int cols = min(wide, x->n - j), steps = min(x->with->steps, x->k - p);
            pack_b(x->with, x->block_b, from(x->b, p, j), cols, steps);
            for (int i = 0; i < x->m; i += tall) multiply_block(x, i, min(tall, x->m - i), p, steps, j, cols, x->block_b);
        }
}

// Both factors where they are stored, which suits sums over many steps of short lines,
// as the gradients of small weights are: a block of steps lies within a few pages then,
// and copying it would take as long as a quarter of its products.
enum { SHORT_LINE = 384 };

static int lines_are_short(const struct serial *x) {
    return x->with->as_stored && x->a.transposed && !x->b.transposed && x->a.line <= SHORT_LINE && x->b.line <= SHORT_LINE;
}

static void as_stored_order(const struct serial *x) {
    const struct kernel *with = x->with;
    const int whole = x->n / with->cols * with->cols;
    for (int p = 0; p < x->k; p += with->steps) {
        const int steps = min(with->steps, x->k - p), add = x->accumulate || p > 0;
        const struct operand a = from(x->a, 0, p), b = from(x->b, p, 0);
        if (whole < x->n) pack_b(with, x->block_b, from(b, 0, whole), x->n - whole, steps); // of which a tile would read too much
        for (int i = 0; i < x->m; i += with->rows) {
            const int rows = min(with->rows, x->m - i);
            float *c = x->c + i * x->ldc;
            for (int j = 0; j < whole; j += with->cols)
                with->as_stored(rows, steps, a.data + i, a.line, b.data + j, b.line, c + j, x->ldc, with->cols, add);
            if (whole < x->n)
                with->as_stored(rows, steps, a.data + i, a.line, x->block_b, with->cols, c + whole, x->ldc, x->n - whole, add);
        }
    }
}

// C = or += op(A) op(B) on the calling thread.
static void multiply_serial(const struct kernel *with, int m, int n, int k, struct operand a, struct operand b,
                            float *c, long ldc, int accumulate) {
    if (k == 0 && !accumulate)
        for (int i = 0; i < m; i++) memset(c + i * ldc, 0, n * sizeof(float));
    float *block_a = workspace(), *block_b = block_a + (long)with->a_panels * with->a_panel;
    const struct serial x = {with, m, n, k, a, b, c, ldc, accumulate, block_a, block_b};
    if (with->enter) with->enter();
    if (m <= with->rows)
        few_rows_order(&x);
    else if (lines_are_short(&x))
        as_stored_order(&x);
    else if (!a.transposed && (n + with->cols - 1L) * (k + with->steps) <= WHOLE_B * (long)with->pair)
        rows_first_order(&x);
    else
        steps_first_order(&x);
    if (with->leave) with->leave();
}

void gemm_serial(int ta, int tb, int m, int n, int k, const float *a, int lda, const float *b,
                 int ldb, float *c, int ldc, int accumulate) {
    pthread_once(&once, init);
    multiply_serial(float32, m, n, k, (struct operand){a, lda, ta}, (struct operand){b, ldb, tb}, c, ldc, accumulate);
}

// A product whose C is cut into blocks: one task a block.
struct product {
    const struct kernel *with;
    int m, n, k;
    struct operand a, b;
    float *c;
    long ldc;
    int accumulate;
    int block_rows, block_cols;
};

static void product_block(void *arg, int task) {
    const struct product *x = arg;
    const int across = (x->n + x->block_cols - 1) / x->block_cols;
    const int i = task / across * x->block_rows, j = task % across * x->block_cols;
    multiply_serial(x->with, min(x->block_rows, x->m - i), min(x->block_cols, x->n - j), x->k,
                    from(x->a, i, 0), from(x->b, 0, j), x->c + i * x->ldc + j, x->ldc, x->accumulate);
}

static int blocks(int n, int size) { return (n + size - 1) / size; }

// Cuts C into `parts` blocks of whole tiles, in the way that costs least: the largest
// block decides, and every row of blocks packs B again, every column A, at the cost of
// some five rows or columns of products.
static void cut(struct product *x, int parts) {
    const int tiles_down = blocks(x->m, x->with->rows), tiles_across = blocks(x->n, x->with->cols);
    double least = INFINITY;
    for (int down = 1; down <= parts; down++) {
        if (parts % down) continue;
        const int across = parts / down;
        const int rows = blocks(tiles_down, down), cols = blocks(tiles_across, across);
        const double cost = (double)rows * cols * (1 + 5.0 * down / x->m + 5.0 * across / x->n);
        if (cost >= least) continue;
        least = cost;
        x->block_rows = rows * x->with->rows;
        x->block_cols = cols * x->with->cols;
    }
}

static void multiply_parallel(struct cpu *cpu, const struct kernel *with, int m, int n, int k, struct operand a,
                              struct operand b, float *c, long ldc, int accumulate) {
    if (m == 0 || n == 0) return;
    struct product x = {with, m, n, k, a, b, c, ldc, accumulate, m, n};
    // One block a thread: smaller ones pack more. A block of less than LEAST products,
    // some five microseconds, is not worth a thread's attention; reading B costs about a
    // dozen rows.
    enum { LEAST = 1 << 19 };
    const double most = (m + 12.0) * n * k / LEAST;
    const int threads = most < cpu->threads ? (int)most : cpu->threads;
    if (threads > 1) cut(&x, threads);
    parallel_for(cpu, product_block, &x, blocks(m, x.block_rows) * blocks(n, x.block_cols));
}

void gemm_float32(struct cpu *cpu, int ta, int tb, int m, int n, int k, const float *a, int lda,
                  const float *b, int ldb, float *c, int ldc, int accumulate) {
    pthread_once(&once, init);
    multiply_parallel(cpu, float32, m, n, k, (struct operand){a, lda, ta}, (struct operand){b, ldb, tb}, c, ldc, accumulate);
}

void gemm_bfloat16(struct cpu *cpu, int ta, int tb, int m, int n, int k, const float *a, int lda,
                   const float *b, int ldb, float *c, int ldc, int accumulate) {
    pthread_once(&once, init);
    multiply_parallel(cpu, bfloat16, m, n, k, (struct operand){a, lda, ta}, (struct operand){b, ldb, tb}, c, ldc, accumulate);
}
