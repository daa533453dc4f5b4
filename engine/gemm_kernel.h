// The inner kernel of gemm.c, and the packing it needs, for one instruction set.
// gemm.c includes this file once per set, with these defined:
//
//   NAME(x)  x with the set's suffix
//   TARGET   the function attribute that selects the set
//   LANES    floats in a vector register
//   ROWS     rows of a tile; two vectors a row are summed in registers
//   TRANSPOSE_LINES, FEW  see the end
//
// Each element of a tile is the sum of its k products in order, one fused
// multiply-add after the other, whatever the tile's height: that is what keeps a
// row of C the same bits in any company.

#define COLS (2 * LANES)

typedef float NAME(vec) __attribute__((vector_size(4 * LANES)));
typedef float NAME(vec_memory) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

// One tile of `rows` rows. Element (i, p) of A is a[i*row + p*step]; these three are
// compile-time constants after inlining. Step p of B is the COLS floats at b + p*ldb.
static inline __attribute__((always_inline)) TARGET void NAME(tile_rows)(
    const int rows, const long row, const long step, int k, const float *a, const float *b, long ldb,
    float *c, long ldc, int cols, int add) {
    NAME(vec) sum[ROWS][2] = {0};
    const char *next = (const char *)(a + A_PANEL);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        __builtin_prefetch(c + i * ldc, 1);
        if (LANES == 16) __builtin_prefetch(c + i * ldc + LANES, 1);
    }
    for (int p = 0; p < k; p++) {
        
        NAME(vec) b0 = *(const NAME(vec_memory) *)b, b1 = *(const NAME(vec_memory) *)(b + LANES);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            sum[i][0] += a[i * row] * b0;
            sum[i][1] += a[i * row] * b1;
        }
        a += step;
        b += ldb;
    }
    // A tile over the right edge of C goes through a whole tile on the side.
    float edge[ROWS][COLS];
    const int whole = cols == COLS;
    float *out = whole ? c : edge[0];
    const long pitch = whole ? ldc : COLS;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            NAME(vec_memory) *o = (NAME(vec_memory) *)(out + i * pitch + j * LANES);
            if (whole && add) sum[i][j] += (NAME(vec))*o;
            *o = sum[i][j];
        }
    }
    if (whole) return;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) c[i * ldc + j] = add ? c[i * ldc + j] + edge[i][j] : edge[i][j];
}

#define CASE(n) case n: NAME(tile_rows)(n, ROW, STEP, k, a, b, ldb, c, ldc, cols, add); break;
#if ROWS > 6
#define CASES CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14)
#else
#define CASES CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#endif

// The two layouts of a packed panel of A: by rows, STEPS_PITCH floats a row, or by
// steps, ROWS floats a step.
#define ROW STEPS_PITCH
#define STEP 1
TARGET static void NAME(tile_by_row)(int rows, int k, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add) {
    switch (rows) { CASES }
}
#undef ROW
#undef STEP
#define ROW 1
#define STEP ROWS
TARGET static void NAME(tile_by_step)(int rows, int k, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add) {
    switch (rows) { CASES }
}
#undef ROW
#undef STEP
#undef CASE
#undef CASES

// Packing. Rows that follow at once are fetched while one is copied: they often lie in
// another page, where the processor does not look ahead by itself.
enum { NAME(ahead) = 4 };

// Row i of the panel, STEPS_PITCH floats, is row i of x.
TARGET static void NAME(copy_rows)(float *restrict panels, const float *restrict x, long line, int count, int steps) {
    for (int i = 0; i < count; i++, x += line) {
        float *panel = panels + i / ROWS * A_PANEL + i % ROWS * STEPS_PITCH;
        int p = 0;
        for (; p + LANES <= steps; p += LANES) {
            __builtin_prefetch(x + NAME(ahead) * line + p);
            *(NAME(vec_memory) *)(panel + p) = *(const NAME(vec_memory) *)(x + p);
        }
        for (; p < steps; p++) panel[p] = x[p];
    }
}

// Panels of `width` columns of x, one step after the other; the last one is filled up
// with zeros.
static inline __attribute__((always_inline)) TARGET void NAME(copy_steps)(
    const int width, const long panel, float *restrict panels, const float *restrict x, long line, int count, int steps) {
    for (int p = 0; p < steps; p++, panels += width, x += line) {
        float *to = panels;
        int i = 0;
        for (; i + width <= count; i += width, to += panel) {
            __builtin_prefetch(x + NAME(ahead) * line + i);
            if (width > 16) __builtin_prefetch(x + NAME(ahead) * line + i + 16);
            memcpy(to, x + i, width * sizeof(float));
        }
        if (i == count) continue;
        for (int j = 0; j < width; j++) to[j] = i + j < count ? x[i + j] : 0;
    }
}

TARGET static void NAME(copy_a)(float *panel, const float *x, long line, int count, int steps) {
    NAME(copy_steps)(ROWS, A_PANEL, panel, x, line, count, steps);
}

TARGET static void NAME(copy_b)(float *panel, const float *x, long line, int count, int steps) {
    NAME(copy_steps)(COLS, (long)COLS * steps, panel, x, line, count, steps);
}

static const struct kernel NAME(kernel) = {ROWS,          COLS,          NAME(tile_by_row), NAME(tile_by_step),
                                           NAME(copy_rows), NAME(copy_a), NAME(copy_b), TRANSPOSE_LINES,   FEW};

#undef NAME
#undef TARGET
#undef LANES
#undef ROWS
#undef COLS
#undef TRANSPOSE_LINES
#undef FEW
