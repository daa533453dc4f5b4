// Single-precision matrix product, C = op(A) op(B) (+ C).
//
// The usual construction (Goto and van de Geijn, "Anatomy of high-performance
// matrix multiplication", 2008): blocks of A and B are copied into panels that the
// inner kernel reads front to back, with a panel of B in the first-level cache and
// a block of A in the second. All four transpose forms differ only in the copying.
//
// C is never split along k, and a block of k is always STEPS long, so an element
// of C is the same sum in the same order for any number of threads, rows and
// columns. The threads can therefore cut C as they like.
#include "gemm.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// STEPS of k in a block: a panel of B, 32 columns wide at most, fills two thirds
// of a first-level cache of 48 KiB. The block of A (393 KiB) and that of B (1 MiB)
// live in the second level, or the third where that is small. A row of a panel of A
// takes STEPS_PITCH floats, so that rows fall into different sets of the cache.
enum { STEPS = 256, STEPS_PITCH = STEPS + 16, A_PANELS = 12, B_PANELS = 16, A_PANEL = 4096 + 16, COLS_MAX = 32 };

// What one instruction set brings. All layouts of A and B are those of gemm_kernel.h.
struct kernel {
    int rows, cols;  // of a tile of C
    void (*by_row)(int rows, int k, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add);
    void (*by_step)(int rows, int k, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add);
    void (*copy_rows)(float *panel, const float *x, long line, int count, int steps);
    void (*copy_a)(float *panel, const float *x, long line, int count, int steps);
    void (*copy_b)(float *panel, const float *x, long line, int count, int steps);
    void (*transpose_b)(float *panel, const float *x, long line, int count, int steps);
    void (*few)(int rows, int k, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add);
};

#if defined(__clang__)
#define SHUFFLE(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#else
#define SHUFFLE(x, y, a, b, c, d) __builtin_shuffle(x, y, (lanes){a, b, c, d})
#endif

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t lanes __attribute__((vector_size(16)));

// Writes panel[p*width + i] = x[i*line + p] for i < count, p < steps: four lines at
// a time, as transposed 4 x 4 blocks.
static inline __attribute__((always_inline)) void transpose4(float *panel, const int width, const float *x, long line, int count, int steps) {
    if (count < width) memset(panel, 0, (size_t)steps * width * sizeof(float));
    int i = 0;
    for (; i + 4 <= count; i += 4, x += 4 * line) {
        int p = 0;
        for (; p + 4 <= steps; p += 4) {
            quad r0 = *(quad *)(x + p), r1 = *(quad *)(x + line + p);
            quad r2 = *(quad *)(x + 2 * line + p), r3 = *(quad *)(x + 3 * line + p);
            quad even01 = SHUFFLE(r0, r1, 0, 4, 2, 6), odd01 = SHUFFLE(r0, r1, 1, 5, 3, 7);
            quad even23 = SHUFFLE(r2, r3, 0, 4, 2, 6), odd23 = SHUFFLE(r2, r3, 1, 5, 3, 7);
            float *to = panel + (long)p * width + i;
            *(quad *)to = SHUFFLE(even01, even23, 0, 1, 4, 5);
            *(quad *)(to + width) = SHUFFLE(odd01, odd23, 0, 1, 4, 5);
            *(quad *)(to + 2 * width) = SHUFFLE(even01, even23, 2, 3, 6, 7);
            *(quad *)(to + 3 * width) = SHUFFLE(odd01, odd23, 2, 3, 6, 7);
        }
        for (; p < steps; p++)
            for (int r = 0; r < 4; r++) panel[(long)p * width + i + r] = x[r * line + p];
    }
    for (; i < count; i++, x += line)
        for (int p = 0; p < steps; p++) panel[(long)p * width + i] = x[p];
}

static void transpose_16(float *panel, const float *x, long line, int count, int steps) { transpose4(panel, 16, x, line, count, steps); }
static void transpose_8(float *panel, const float *x, long line, int count, int steps) { transpose4(panel, 8, x, line, count, steps); }

#if defined(__x86_64__)
#include "gemm_transpose.h"
#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq")))
#define LANES 16
#define ROWS 14
#define TRANSPOSE_LINES transpose_avx512
#define FEW few_avx512
#include "gemm_kernel.h"

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8
#define ROWS 6
#define TRANSPOSE_LINES transpose_16
#define FEW 0
#include "gemm_kernel.h"
#endif

#define NAME(x) x##_portable
#define TARGET
#define LANES 4
#define ROWS 6
#define TRANSPOSE_LINES transpose_8
#define FEW 0
#include "gemm_kernel.h"

static const struct kernel *best_kernel(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512dq")) return &kernel_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &kernel_avx2;
#endif
    return &kernel_portable;
}

static const struct kernel *kernel;
static pthread_key_t workspace_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void) {
    kernel = best_kernel();
    pthread_key_create(&workspace_key, free);
}

// The calling thread's room for one block of A and, behind it, one of B.
static float *workspace(void) {
    float *w = pthread_getspecific(workspace_key);
    if (w) return w;
    size_t floats = (size_t)A_PANELS * A_PANEL + STEPS * B_PANELS * COLS_MAX;
    void *fresh;
    if (posix_memalign(&fresh, 2 << 20, (floats * sizeof(float) + (2<<20)-1) >> 21 << 21)) {
        fprintf(stderr, "caper: no memory for the %zu bytes a matrix product works in\n", floats * sizeof(float));
        abort();
    }
    madvise(fresh, (floats * sizeof(float) + (2<<20)-1) >> 21 << 21, MADV_HUGEPAGE);
    pthread_setspecific(workspace_key, fresh);
    return fresh;
}

static int min(int a, int b) { return a < b ? a : b; }

// C += or = one packed block of A (m x k) times one of B (k x n).
static void multiply(int ta, int m, int n, int k, const float *a, const float *b, float *c, long ldc, int add) {
    const int rows = kernel->rows, cols = kernel->cols;
    for (int j = 0; j < n; j += cols)
        for (int i = 0; i < m; i += rows)
            (ta ? kernel->by_step : kernel->by_row)(min(rows, m - i), k, a + (long)(i / rows) * A_PANEL, b + (long)j * k, cols,
                         c + i * ldc + j, ldc, min(cols, n - j), add);
}

static void pack_a(float *panel, int ta, int m, int k, const float *a, long lda) {
    (ta ? kernel->copy_a : kernel->copy_rows)(panel, a, lda, m, k);
}

static void pack_b(float *panel, int tb, int n, int k, const float *b, long ldb) {
    if (!tb)
        kernel->copy_b(panel, b, ldb, n, k);
    else
        for (int j = 0; j < n; j += kernel->cols, panel += (long)k * kernel->cols)
            kernel->transpose_b(panel, b + j * ldb, ldb, min(kernel->cols, n - j), k);
}

static void multiply_few(int ta, int tb, int m, int n, int k, const float *a, const float *b, long ldb, float *c, long ldc, int add, float *room) {
    const int cols = kernel->cols;
    int j = 0;
    if (tb && kernel->few) {
        if (!ta)
            for (; j < n; j += 16) kernel->few(m, k, a, b + j * ldb, ldb, c + j, ldc, min(16, n - j), add);
    } else if (!tb)
        for (; j + cols <= n; j += cols)
            (ta ? kernel->by_step : kernel->by_row)(m, k, a, b + j, ldb, c + j, ldc, cols, add);
    for (; j < n; j += cols) {
        pack_b(room, tb, min(cols, n - j), k, tb ? b + j * ldb : b + j, ldb);
        multiply(ta, m, min(cols, n - j), k, a, room, c + j, ldc, add);
    }
}

void gemm_serial(int ta, int tb, int m, int n, int k, const float *a, int lda, const float *b,
                 int ldb, float *c, int ldc, int accumulate) {
    pthread_once(&once, init);
    if (k == 0 && !accumulate)
        for (int i = 0; i < m; i++) memset(c + (long)i * ldc, 0, n * sizeof(float));
    float *block_a = workspace(), *block_b = block_a + (long)A_PANELS * A_PANEL;
    const int most_rows = A_PANELS * kernel->rows;
    if (m <= kernel->rows) {
        for (int p = 0; p < k; p += STEPS) {
            const int kb = min(STEPS, k - p);
            pack_a(block_a, ta, m, kb, ta ? a + (long)p * lda : a + p, lda);
            multiply_few(ta, tb, m, n, kb, block_a, tb ? b + p : b + (long)p * ldb, ldb, c, ldc, accumulate || p > 0, block_b);
        }
        return;
    }
    // Few rows read a panel of B only once or twice: better while it is still in the
    // first-level cache.
    const int most_cols = (m > 2 * kernel->rows ? B_PANELS : 4) * kernel->cols;
    for (int j = 0; j < n; j += most_cols)
        for (int p = 0; p < k; p += STEPS) {
            int nb = min(most_cols, n - j), kb = min(STEPS, k - p);
            pack_b(block_b, tb, nb, kb, tb ? b + (long)j * ldb + p : b + (long)p * ldb + j, ldb);
            for (int i = 0; i < m; i += most_rows) {
                int mb = min(most_rows, m - i);
                pack_a(block_a, ta, mb, kb, ta ? a + (long)p * lda + i : a + (long)i * lda + p, lda);
                multiply(ta, mb, nb, kb, block_a, block_b, c + (long)i * ldc + j, ldc, accumulate || p > 0);
            }
        }
}

// A product cut into blocks of C, block_rows x block_cols each: one task a block.
struct product {
    int ta, tb, m, n, k, lda, ldb, ldc, accumulate;
    const float *a, *b;
    float *c;
    int block_rows, block_cols;
};

static int blocks(int n, int size) { return (n + size - 1) / size; }

// Cuts C into `parts` blocks of whole tiles and returns the time that this takes
// relative to one block on one of `parts` threads: the largest block may hold more
// than its share, and every row of blocks packs B again, every column A, at the cost
// of some five rows or columns of products.
static double cut(struct product *x, int parts) {
    const int tiles_m = blocks(x->m, kernel->rows), tiles_n = blocks(x->n, kernel->cols);
    double best = INFINITY;
    for (int down = 1; down <= parts; down++) {
        if (parts % down) continue;
        const int across = parts / down;
        const int rows = blocks(tiles_m, down), cols = blocks(tiles_n, across);
        double time = (double)rows * cols * parts / ((double)tiles_m * tiles_n) * (1 + 5.0 * down / x->m + 5.0 * across / x->n);
        if (time >= best) continue;
        best = time;
        x->block_rows = rows * kernel->rows;
        x->block_cols = cols * kernel->cols;
    }
    return best;
}

static void product_block(void *arg, int task) {
    const struct product *x = arg;
    int across = blocks(x->n, x->block_cols);
    int i = task / across * x->block_rows, j = task % across * x->block_cols;
    gemm_serial(x->ta, x->tb, min(x->block_rows, x->m - i), min(x->block_cols, x->n - j), x->k,
                x->ta ? x->a + i : x->a + (long)i * x->lda, x->lda,
                x->tb ? x->b + (long)j * x->ldb : x->b + j, x->ldb,
                x->c + (long)i * x->ldc + j, x->ldc, x->accumulate);
}

void gemm(struct cpu *cpu, int ta, int tb, int m, int n, int k, const float *a, int lda,
          const float *b, int ldb, float *c, int ldc, int accumulate) {
    if (m == 0 || n == 0) return;
    pthread_once(&once, init);
    struct product x = {ta, tb, m, n, k, lda, ldb, ldc, accumulate, a, b, c, m, n};
    // A block of less than LEAST products, some five microseconds, is not worth a
    // thread's attention. With several blocks a thread, a slow one holds nobody up:
    // welcome where it costs next to nothing.
    enum { LEAST = 1 << 19 };
    const double most = (m + 12.0) * n * k / LEAST;  // reading B costs about a dozen rows
    if (cpu->threads > 1 && most >= 2) {
        double time = cut(&x, most < cpu->threads ? (int)most : cpu->threads);
        for (int each = 4; each > 1; each /= 2)
            if (cpu->threads * each <= most && cut(&x, cpu->threads * each) < 1.04 * time) break;
            else if (each == 2) cut(&x, most < cpu->threads ? (int)most : cpu->threads);
    }
    parallel_for(cpu, product_block, &x, blocks(m, x.block_rows) * blocks(n, x.block_cols));
}
