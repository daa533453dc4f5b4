// The bfloat16 kernels of gemm.c: the factors are rounded to bfloat16, to the nearest
// and ties to even, while they are packed, and products are summed in float32. Products
// of two bfloat16 are exact in float32, so the kernels differ in the order of the sum
// alone, and in that AMX takes numbers below 2^-126 to be zero.
#include "gemm.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gemm_transpose.h"

// AMX: a tile register holds 16 rows of 16 units, and four of them sum 32 x 32 elements.
// Every processor with AMX has the conversions of AVX-512 BF16 too. Its vdpbf16ps is not
// used where AMX is missing: it multiplied at six tenths of float32 speed.

#define BF16 __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512bf16")))
#define BF16_INLINE static inline __attribute__((always_inline)) BF16

// A panel, 512 steps of 32 rows or columns, is 32 KiB; the blocks of A and B some 140 KB
// and 1 MB. PITCH is a row of a panel of A in units, as in gemm_float32.c.
enum { STEPS = 512, PITCH = STEPS / 2 + 16, ROWS = 32, COLS = 32 };

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

BF16 static void pack_rows(float *panels, const float *x, long line, int lines, int steps) {
    for (int i = 0; i < lines; i++, x += line, panels += PITCH)
        for (int p = 0; p < steps; p += 32) {
            __builtin_prefetch(x + AHEAD * line + p);
            __builtin_prefetch(x + AHEAD * line + p + 16);
            _mm512_store_ps(panels + p / 2, along(x + p, steps - p));
        }
}

BF16 static void pack_columns(float *panels, const float *x, long line, int lines, int steps) {
    for (int p = 0; p < steps; p += 32)
        for (int i = 0; i < lines; i += 16) {
            __m512 unit[16], row[16];
            for (int u = 0; u < 16; u++) {
                const int left = steps - p - 2 * u;
                unit[u] = left > 0 ? across(x + (long)(p + 2 * u) * line + i, line, lines - i, left) : _mm512_setzero_ps();
            }
            transpose16(row, (const float *)unit, 16, 16, 16);
            float *to = panels + (long)i * PITCH + p / 2;
            for (int r = 0; r < 16 && i + r < lines; r++) _mm512_store_ps(to + r * PITCH, row[r]);
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

#define AMX __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx512bf16,amx-tile,amx-bf16")))

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
    float edge[ROWS][COLS] __attribute__((aligned(64)));
    const int whole = rows == ROWS && cols == COLS;
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
    .name = "amx-bf16", .rows = ROWS, .cols = COLS, .pair = 2, .multiple = 32, .steps = STEPS,
    .a_panels = 4, .b_panels = 32, .a_panel = ROWS * PITCH,
    .pack_rows = pack_rows, .pack_columns = pack_columns, .copy = copy, .transpose = transpose,
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

#endif

// Elsewhere: a float32 kernel on rounded factors.

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
    static const struct kernel *list[5];
    static struct kernel rounded[3];
    static char names[3][32];
    int n = 0;
#if defined(__x86_64__)
    if (avx512_supported() && __builtin_cpu_supports("avx512bf16") && amx_granted()) list[n++] = &amx;
#endif
    const struct kernel *const *plain = float32_kernels();
    for (int i = 0; plain[i]; i++) {
        rounded[i] = *plain[i];
        rounded[i].in_place = 0;
        rounded[i].few = 0;
        rounded[i].as_stored = 0;
        rounded[i].round = round_to_bfloat16;
        snprintf(names[i], sizeof names[i], "%s rounding to bf16", plain[i]->name);
        rounded[i].name = names[i];
        list[n++] = &rounded[i];
    }
    return list;
}
