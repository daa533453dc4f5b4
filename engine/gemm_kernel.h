// The float32 kernel of one instruction set. gemm_float32.c includes this file once
// per set, with these defined:
//
//   NAME(x)  x with the set's suffix, TEXT the set's name
//   TARGET   the function attribute that selects the set
//   LANES    floats in a vector register
//   ROWS     rows of a tile; two vectors a row are summed in registers
//   TRANSPOSE, FEW  the kernel's transpose and few
//
// Each element of a tile is the sum of its k products in order, one fused
// multiply-add after the other, whatever the tile's height: that is what keeps a
// row of C the same bits in any company.

#define COLS (2 * LANES)
#define PANEL (ROWS * PITCH)

typedef float NAME(vec) __attribute__((vector_size(4 * LANES)));
typedef float NAME(vec_memory) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

// One tile of `rows` rows. Element (i, p) of A is a[i*row + p*step]; these three are
// compile-time constants after inlining. Step p of B is the COLS floats at b + p*ldb.
static inline __attribute__((always_inline)) TARGET void NAME(tile)(const int rows, const long row, const long step,
                                                                    int k, const float *a, const float *b, long ldb,
                                                                    float *c, long ldc, int cols, int add) {
    // C is wanted when the sums are done: fetch it meanwhile.
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < COLS; j += 16) __builtin_prefetch(c + i * ldc + j, 1);
    NAME(vec) sum[ROWS][2] = {0};
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

#define CASE(n) case n: NAME(tile)(n, ROW, STEP, k, a, b, ldb, c, ldc, cols, add); break;
#if ROWS > 6
#define CASES CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14)
#else
#define CASES CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#endif

// The two layouts of a panel of A: row after row, or step after step.
#define ROW PITCH
#define STEP 1
TARGET static void NAME(by_row)(int rows, int k, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add) {
    switch (rows) { CASES }
}
#undef ROW
#undef STEP
#define ROW 1
#define STEP ROWS
TARGET static void NAME(by_column)(int rows, int k, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add) {
    switch (rows) { CASES }
}
#undef STEP
#define STEP lda
TARGET static void NAME(as_stored)(int rows, int k, const float *a, long lda, const float *b, long ldb, float *c, long ldc, int cols, int add) {
    switch (rows) { CASES }
}
#undef ROW
#undef STEP
#undef CASE
#undef CASES

// Packing. Rows to come are fetched while one is copied: they often lie in other pages,
// where the processor does not look ahead by itself.
enum { NAME(AHEAD) = 4 };

TARGET static void NAME(pack_rows)(float *restrict panels, const float *restrict x, long line, int lines, int steps) {
    for (int i = 0; i < lines; i++, x += line) {
        float *row = panels + i / ROWS * PANEL + i % ROWS * PITCH;
        int p = 0;
        for (; p + LANES <= steps; p += LANES) {
            __builtin_prefetch(x + NAME(AHEAD) * line + p);
            *(NAME(vec_memory) *)(row + p) = *(const NAME(vec_memory) *)(x + p);
        }
        for (; p < steps; p++) row[p] = x[p];
    }
}

// Step after step, each in panels of `width` lines, `panel` floats apart; the last one
// is filled up with zeros.
static inline __attribute__((always_inline)) TARGET void NAME(pack_steps)(const int width, long panel, float *restrict panels,
                                                                          const float *restrict x, long line, int lines, int steps) {
    for (int p = 0; p < steps; p++, panels += width, x += line) {
        float *to = panels;
        int i = 0;
        for (; i + width <= lines; i += width, to += panel) {
            for (int j = 0; j < width; j += 16) __builtin_prefetch(x + NAME(AHEAD) * line + i + j);
            memcpy(to, x + i, width * sizeof(float));
        }
        if (i < lines)
            for (int j = 0; j < width; j++) to[j] = i + j < lines ? x[i + j] : 0;
    }
}

TARGET static void NAME(pack_columns)(float *panels, const float *x, long line, int lines, int steps) {
    NAME(pack_steps)(ROWS, PANEL, panels, x, line, lines, steps);
}

TARGET static void NAME(copy)(float *panels, const float *x, long line, int lines, int steps) {
    NAME(pack_steps)(COLS, (long)COLS * steps, panels, x, line, lines, steps);
}

static const struct kernel NAME(kernel) = {
    .name = TEXT, .rows = ROWS, .cols = COLS, .pair = 1, .multiple = 1, .steps = STEPS,
    .a_panels = 168 / ROWS, .b_panels = 512 / COLS, .a_panel = PANEL,
    .pack_rows = NAME(pack_rows), .pack_columns = NAME(pack_columns), .copy = NAME(copy), .transpose = TRANSPOSE,
    .by_row = NAME(by_row), .by_column = NAME(by_column), .in_place = 1, .few = FEW, .as_stored = NAME(as_stored),
};

#undef NAME
#undef TEXT
#undef TARGET
#undef LANES
#undef ROWS
#undef COLS
#undef PANEL
#undef TRANSPOSE
#undef FEW
