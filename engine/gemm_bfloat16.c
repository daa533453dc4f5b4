// The bfloat16 kernels of gemm.c: the factors are rounded to bfloat16, to the nearest
// and ties to even, while they are packed, and products are summed in float32. Products
// of two bfloat16 are exact in float32, so the kernels differ in the order of the sum
// alone, and in that AMX and AVX-512 take numbers below 2^-126 to be zero.
#include "gemm.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gemm_transpose.h"

#define BF16 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512bf16")))
#define BF16_INLINE static inline __attribute__((always_inline)) BF16

// A panel, 512 steps of 32 rows or columns, is 32 KiB; the blocks of A and B some 140 KB
// and 1 MB. PITCH is a row of a panel of A in units, as in gemm_float32.c.
enum { STEPS = 512, PITCH = STEPS / 2 + 16, COLS = 32 };

static __mmask16 first(int n) { return n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1; }

// Sixteen units of one row: 32 steps, of which the first n exist.
BF16_INLINE __m512 along(const float *x, int n) {
    __m512 low = _mm512_maskz_loadu_ps(first(n), x), high = _mm512_maskz_loadu_ps(first(n - 16), x + 16);
    return (__m512)_mm512_cvtne2ps_pbh(high, low);
}

// One unit of sixteen columns, of which the first n exist: two steps, the second one
// a line after the first, or zeros.
BF16_INLINE __m512 across(const float *x, long line, int n, int steps) {
    __m512 even = _mm512_maskz_loadu_ps(first(n), x), odd = _mm512_maskz_loadu_ps(steps > 1 ? first(n) : 0, x + line);
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return (__m512)_mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(odd, even));
}

enum { AHEAD = 4 }; // rows fetched ahead, as in gemm_kernel.h

// Row i of a block of A, in panels of `rows` rows.
BF16_INLINE float *row_of(const int rows, float *panels, int i) { return panels + (i / rows * rows + i % rows) * PITCH; }

BF16_INLINE void pack_rows(const int rows, float *panels, const float *x, long line, int lines, int steps) {
    for (int i = 0; i < lines; i++, x += line) {
        float *row = row_of(rows, panels, i);
        for (int p = 0; p < steps; p += 32) {
            __builtin_prefetch(x + AHEAD * line + p);
            __builtin_prefetch(x + AHEAD * line + p + 16);
            _mm512_storeu_ps(row + p / 2, along(x + p, steps - p));
        }
    }
}

BF16_INLINE void pack_columns(const int rows, float *panels, const float *x, long line, int lines, int steps) {
    const int group = rows < 16 ? rows : 16;
    for (int p = 0; p < steps; p += 32)
        for (int i = 0; i < lines; i += group) {
            __m512 unit[16], row[16];
            const int n = lines - i < group ? lines - i : group;
            for (int u = 0; u < 16; u++) {
                const int left = steps - p - 2 * u;
                unit[u] = left > 0 ? across(x + (long)(p + 2 * u) * line + i, line, n, left) : _mm512_setzero_ps();
            }
            transpose16(row, (const float *)unit, 16, 16, 16);
            for (int r = 0; r < n; r++) _mm512_storeu_ps(row_of(rows, panels, i + r) + p / 2, row[r]);
        }
}

// Units of a block of k: its steps filled up to a multiple of 32.
BF16_INLINE int units_of(int steps) { return (steps + 31) / 32 * 16; }

BF16 static void copy(float *panels, const float *x, long line, int lines, int steps) {
    const int units = units_of(steps);
    for (int u = 0; u < units; u++) {
        const int left = steps - 2 * u;
        const float *from = x + 2L * u * line;
        for (int j = 0; j < lines; j += 16) {
            __builtin_prefetch(from + AHEAD * line + j);
            __builtin_prefetch(from + (AHEAD + 1) * line + j);
            _mm512_store_ps(panels + ((long)(j / COLS) * units + u) * COLS + j % COLS,
                            left > 0 ? across(from + j, line, lines - j, left) : _mm512_setzero_ps());
        }
    }
}

BF16 static void transpose(float *panels, const float *x, long line, int lines, int steps) {
    const int units = units_of(steps);
    for (int j = 0; j < lines; j += 16)
        for (int p = 0; p < steps; p += 32) {
            __m512 row[16], unit[16];
            for (int i = 0; i < 16; i++) {
                const float *from = x + (j + i) * line + p;
                __builtin_prefetch(from + 16 * line);
                __builtin_prefetch(from + 16 * line + 16);
                row[i] = j + i < lines ? along(from, steps - p) : _mm512_setzero_ps();
            }
            transpose16(unit, (const float *)row, 16, 16, 16);
            float *to = panels + ((long)(j / COLS) * units + p / 2) * COLS + j % COLS;
#pragma GCC unroll 16
            for (int u = 0; u < 16; u++) _mm512_store_ps(to + u * COLS, unit[u]);
        }
}

// --- AMX: a tile register holds 16 rows of 16 units; four of them sum 32 x 32 elements.

#define AMX __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512bf16,amx-tile,amx-bf16")))

enum { AMX_ROWS = 32 };

BF16 static void amx_pack_rows(float *panels, const float *x, long line, int lines, int steps) {
    pack_rows(AMX_ROWS, panels, x, line, lines, steps);
}

BF16 static void amx_pack_columns(float *panels, const float *x, long line, int lines, int steps) {
    pack_columns(AMX_ROWS, panels, x, line, lines, steps);
}

// Eight tiles of 16 rows of 64 bytes.
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_tiles __attribute__((aligned(64))) = {
    .palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

AMX static void amx_enter(void) { _tile_loadconfig(&amx_tiles); }

AMX static void amx_leave(void) { _tile_release(); }

// 32 x 32 elements of C, or 16 x 32.
AMX static inline __attribute__((always_inline)) void amx_sum(const int both, int units, const float *a, const float *b, long ldb,
                                                              float *c, long ldc, int add) {
    const long c_bytes = ldc * sizeof(float), a_bytes = PITCH * sizeof(float), b_bytes = ldb * sizeof(float);
    // GCC's tile loads do not say that they read memory: have it written by now.
    __asm__ volatile("" ::: "memory");
    if (add) {
        _tile_loadd(0, c, c_bytes);
        _tile_loadd(1, c + 16, c_bytes);
        if (both) {
            _tile_loadd(2, c + 16 * ldc, c_bytes);
            _tile_loadd(3, c + 16 * ldc + 16, c_bytes);
        }
    } else {
        _tile_zero(0);
        _tile_zero(1);
        if (both) {
            _tile_zero(2);
            _tile_zero(3);
        }
    }
    for (int u = 0; u < units; u += 16) {
        _tile_loadd(6, b + u * ldb, b_bytes);
        _tile_loadd(4, a + u, a_bytes);
        _tile_loadd(7, b + u * ldb + 16, b_bytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (both) {
            _tile_loadd(5, a + 16 * PITCH + u, a_bytes);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, c, c_bytes);
    _tile_stored(1, c + 16, c_bytes);
    if (both) {
        _tile_stored(2, c + 16 * ldc, c_bytes);
        _tile_stored(3, c + 16 * ldc + 16, c_bytes);
    }
}

AMX static void amx_tile(int rows, int units, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add) {
    // A tile over the edge of C goes through a whole one on the side.
    float edge[AMX_ROWS][COLS] __attribute__((aligned(64)));
    const int whole = rows == AMX_ROWS && cols == COLS;
    if (!whole && add)
        for (int i = 0; i < rows; i++) memcpy(edge[i], c + i * ldc, cols * sizeof(float));
    float *out = whole ? c : edge[0];
    const long pitch = whole ? ldc : COLS;
    if (rows > 16)
        amx_sum(1, units, a, b, ldb, out, pitch, add);
    else
        amx_sum(0, units, a, b, ldb, out, pitch, add);
    if (!whole)
        for (int i = 0; i < rows; i++) memcpy(c + i * ldc, edge[i], cols * sizeof(float));
}

static const struct kernel amx = {
    .name = "amx-bf16", .rows = AMX_ROWS, .cols = COLS, .pair = 2, .multiple = 32, .steps = STEPS,
    .a_panels = 4, .b_panels = 32, .a_panel = AMX_ROWS * PITCH,
    .pack_rows = amx_pack_rows, .pack_columns = amx_pack_columns, .copy = copy, .transpose = transpose,
    .by_row = amx_tile, .by_column = amx_tile, .enter = amx_enter, .leave = amx_leave,
};

// The system saves a process's tile registers only once it has asked for them.
static int amx_granted(void) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    unsigned a, b, c, d;
    const unsigned tile_and_bf16 = 1u << 24 | 1u << 22;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & tile_and_bf16) == tile_and_bf16 &&
           !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA);
}

// --- AVX-512 BF16: vdpbf16ps adds two products to each of sixteen sums.

enum { DOT_ROWS = 14 };

BF16 static void dot_pack_rows(float *panels, const float *x, long line, int lines, int steps) {
    pack_rows(DOT_ROWS, panels, x, line, lines, steps);
}

BF16 static void dot_pack_columns(float *panels, const float *x, long line, int lines, int steps) {
    pack_columns(DOT_ROWS, panels, x, line, lines, steps);
}

BF16_INLINE void dot_rows(const int rows, int units, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add) {
    __m512 sum[DOT_ROWS][2];
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
    for (int u = 0; u < units; u++, a++, b += ldb) {
        __m512bh b0 = (__m512bh)_mm512_load_ps(b), b1 = (__m512bh)_mm512_load_ps(b + 16);
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++) {
            __m512bh pair = (__m512bh)_mm512_set1_ps(a[i * PITCH]);
            sum[i][0] = _mm512_dpbf16_ps(sum[i][0], pair, b0);
            sum[i][1] = _mm512_dpbf16_ps(sum[i][1], pair, b1);
        }
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            float *to = c + i * ldc + 16 * j;
            const __mmask16 there = first(cols - 16 * j);
            if (add) sum[i][j] = _mm512_add_ps(sum[i][j], _mm512_maskz_loadu_ps(there, to));
            _mm512_mask_storeu_ps(to, there, sum[i][j]);
        }
}

BF16 static void dot_tile(int rows, int units, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add) {
#define CASE(n) case n: dot_rows(n, units, a, b, ldb, c, ldc, cols, add); break;
    switch (rows) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14)
    }
#undef CASE
}

static const struct kernel dot = {
    .name = "avx512-bf16", .rows = DOT_ROWS, .cols = COLS, .pair = 2, .multiple = 32, .steps = STEPS,
    .a_panels = 16, .b_panels = 32, .a_panel = DOT_ROWS * PITCH,
    .pack_rows = dot_pack_rows, .pack_columns = dot_pack_columns, .copy = copy, .transpose = transpose,
    .by_row = dot_tile, .by_column = dot_tile,
};
#endif

// --- Elsewhere: a float32 kernel on rounded factors.

CPU_CLONES
static void round_to_bfloat16(float *x, long n) {
    for (long i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        const uint32_t nan = (bits & 0x7fffffff) > 0x7f800000;
        bits = nan ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
        bits &= 0xffff0000;
        memcpy(x + i, &bits, sizeof bits);
    }
}

const struct kernel *const *bfloat16_kernels(void) {
    static const struct kernel *list[6];
    static struct kernel rounded[3];
    static char names[3][32];
    int n = 0;
#if defined(__x86_64__)
    if (avx512_supported() && __builtin_cpu_supports("avx512bf16")) {
        if (amx_granted()) list[n++] = &amx;
        list[n++] = &dot;
    }
#endif
    const struct kernel *const *plain = float32_kernels();
    for (int i = 0; plain[i]; i++) {
        rounded[i] = *plain[i];
        rounded[i].in_place = 0;
        rounded[i].few = 0;
        rounded[i].round = round_to_bfloat16;
        snprintf(names[i], sizeof names[i], "%s rounding to bf16", plain[i]->name);
        rounded[i].name = names[i];
        list[n++] = &rounded[i];
    }
    return list;
}
