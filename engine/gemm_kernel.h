// The inner kernel of gemm.c for one instruction set. gemm.c includes this file
// once per set, with these defined:
//
//   NAME(x)  x with the set's suffix
//   TARGET   the function attribute that selects the set
//   LANES    floats in a vector register
//   ROWS     rows of a tile; two vectors a row are summed in registers
//   PANEL    floats that one step of k takes in a packed panel of A, >= ROWS
//
// Each element of a tile is the sum of its k products in order, one fused
// multiply-add after the other, whatever the tile's height: that is what keeps a
// row of C the same bits in any company.

typedef float NAME(vec) __attribute__((vector_size(4 * LANES)));
typedef float NAME(vec_unaligned) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

// One tile of `rows` rows, a compile-time constant after inlining. a is a packed
// panel of A (PANEL floats for each step of k), b one of B (2 LANES floats).
static inline __attribute__((always_inline)) TARGET void NAME(tile_rows)(
    const int rows, int k, const float *a, const float *b, float *c, long ldc, int cols, int add) {
    NAME(vec) sum[ROWS][2] = {0};
    for (int p = 0; p < k; p++) {
        NAME(vec) b0 = *(const NAME(vec) *)b, b1 = *(const NAME(vec) *)(b + LANES);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            sum[i][0] += a[i] * b0;
            sum[i][1] += a[i] * b1;
        }
        a += PANEL;
        b += 2 * LANES;
    }
    // A tile over the right edge of C goes through a whole tile on the side.
    float edge[ROWS][2 * LANES];
    const int whole = cols == 2 * LANES;
    float *out = whole ? c : edge[0];
    const long step = whole ? ldc : 2 * LANES;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            NAME(vec_unaligned) *o = (NAME(vec_unaligned) *)(out + i * step + j * LANES);
            if (whole && add) sum[i][j] += (NAME(vec))*o;
            *o = sum[i][j];
        }
    }
    if (whole) return;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) c[i * ldc + j] = add ? c[i * ldc + j] + edge[i][j] : edge[i][j];
}

TARGET static void NAME(tile)(int rows, int k, const float *a, const float *b, float *c, long ldc,
                              int cols, int add) {
#define CASE(n)                                            \
    case n:                                                \
        NAME(tile_rows)(n, k, a, b, c, ldc, cols, add);    \
        break;
    switch (rows) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#if ROWS > 6
        CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14)
#endif
    }
#undef CASE
}

static const struct kernel NAME(kernel) = {ROWS, PANEL, 2 * LANES, NAME(tile)};

#undef NAME
#undef TARGET
#undef LANES
#undef ROWS
#undef PANEL
