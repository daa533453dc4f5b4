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

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kernel {
    int rows;   // of a tile of C
    int panel;  // floats for one step of k in a panel of A
    int cols;   // of a tile of C, and floats for one step of k in a panel of B
    void (*tile)(int rows, int k, const float *a, const float *b, float *c, long ldc, int cols, int add);
};

#if defined(__x86_64__)
#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f")))
#define LANES 16
#define ROWS 14
#define PANEL 16
#include "gemm_kernel.h"

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8
#define ROWS 6
#define PANEL 8
#include "gemm_kernel.h"
#endif

#define NAME(x) x##_portable
#define TARGET
#define LANES 4
#define ROWS 6
#define PANEL 8
#include "gemm_kernel.h"

static const struct kernel *best_kernel(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return &kernel_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &kernel_avx2;
#endif
    return &kernel_portable;
}

// STEPS of k in a block: a panel of B, 32 columns wide at most, fills two thirds
// of a first-level cache of 48 KiB. The block of A (393 KiB) and that of B (1 MiB)
// live in the second level, or the third where that is small.
enum { STEPS = 256, A_PANELS = 24, B_PANELS = 32, PANEL_MAX = 16, COLS_MAX = 32 };

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
    size_t floats = (size_t)STEPS * (A_PANELS * PANEL_MAX + B_PANELS * COLS_MAX);
    void *fresh;
    if (posix_memalign(&fresh, 64, floats * sizeof(float))) {
        fprintf(stderr, "caper: no memory for the %zu bytes a matrix product works in\n", floats * sizeof(float));
        abort();
    }
    pthread_setspecific(workspace_key, fresh);
    return fresh;
}

#if defined(__clang__)
#define SHUFFLE(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#else
#define SHUFFLE(x, y, a, b, c, d) __builtin_shuffle(x, y, (lanes){a, b, c, d})
#endif

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t lanes __attribute__((vector_size(16)));

// Writes panel[p*width + i] = x[i*line + p] for i < count, p < steps: four lines at
// a time, as transposed 4 x 4 blocks.
CPU_CLONES
static void pack_across(float *panel, int width, const float *x, long line, int count, int steps) {
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

// Writes panel[p*width + i] = x[p*line + i] for i < count, p < steps.
static void pack_along(float *panel, int width, const float *x, long line, int count, int steps) {
    for (int p = 0; p < steps; p++, panel += width, x += line) memcpy(panel, x, count * sizeof(float));
}

// Packs `lines` rows of op(A), or columns of op(B), over `steps` of k into panels
// of up to `count` lines each. across: k runs along the rows of x as stored.
static void pack(float *panels, int width, int count, const float *x, long line, int across, int lines, int steps) {
    for (int i = 0; i < lines; i += count, panels += (long)steps * width) {
        int c = lines - i < count ? lines - i : count;
        // The kernel reads a whole step of B, also where C has no column for it.
        if (c < count) memset(panels, 0, (size_t)steps * width * sizeof(float));
        if (across)
            pack_across(panels, width, x + i * line, line, c, steps);
        else
            pack_along(panels, width, x + i, line, c, steps);
    }
}

static int min(int a, int b) { return a < b ? a : b; }

// C += or = one packed block of A (m x k) times one of B (k x n).
static void multiply(int m, int n, int k, const float *a, const float *b, float *c, long ldc, int add) {
    const int rows = kernel->rows, cols = kernel->cols;
    for (int j = 0; j < n; j += cols)
        for (int i = 0; i < m; i += rows)
            kernel->tile(min(rows, m - i), k, a + (long)(i / rows) * k * kernel->panel, b + (long)j * k,
                         c + i * ldc + j, ldc, min(cols, n - j), add);
}

void gemm_serial(int ta, int tb, int m, int n, int k, const float *a, int lda, const float *b,
                 int ldb, float *c, int ldc, int accumulate) {
    pthread_once(&once, init);
    if (k == 0 && !accumulate)
        for (int i = 0; i < m; i++) memset(c + (long)i * ldc, 0, n * sizeof(float));
    float *block_a = workspace(), *block_b = block_a + (long)STEPS * A_PANELS * PANEL_MAX;
    const int most_rows = A_PANELS * kernel->rows;
    // Few rows read a panel of B only once or twice: better while it is still in the
    // first-level cache.
    const int most_cols = (m > 2 * kernel->rows ? B_PANELS : 4) * kernel->cols;
    for (int j = 0; j < n; j += most_cols)
        for (int p = 0; p < k; p += STEPS) {
            int nb = min(most_cols, n - j), kb = min(STEPS, k - p);
            const float *from_b = tb ? b + (long)j * ldb + p : b + (long)p * ldb + j;
            pack(block_b, kernel->cols, kernel->cols, from_b, ldb, tb, nb, kb);
            for (int i = 0; i < m; i += most_rows) {
                int mb = min(most_rows, m - i);
                const float *from_a = ta ? a + (long)p * lda + i : a + (long)i * lda + p;
                pack(block_a, kernel->panel, kernel->rows, from_a, lda, !ta, mb, kb);
                multiply(mb, nb, kb, block_a, block_b, c + (long)i * ldc + j, ldc, accumulate || p > 0);
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
static int half(int size, int tile) { return blocks(blocks(size, 2), tile) * tile; }

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
    // Halve the longer side until every thread has a few blocks, so that a slow one
    // holds nobody up, but stop at blocks of some ten microseconds. Packing B costs
    // about as much as a dozen rows.
    const int wanted = cpu->threads == 1 ? 1 : 4 * cpu->threads;
    const double least = 1 << 21;
    while (blocks(m, x.block_rows) * blocks(n, x.block_cols) < wanted &&
           (x.block_rows + 12.0) * x.block_cols * k >= least) {
        int rows = half(x.block_rows, kernel->rows), cols = half(x.block_cols, kernel->cols);
        if (x.block_rows > x.block_cols && rows < x.block_rows)
            x.block_rows = rows;
        else if (cols < x.block_cols)
            x.block_cols = cols;
        else
            break;
    }
    parallel_for(cpu, product_block, &x, blocks(m, x.block_rows) * blocks(n, x.block_cols));
}
