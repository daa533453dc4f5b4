// The float32 kernels of gemm.c, and what bfloat16 falls back to.
#include "gemm.h"

#include <string.h>

// A panel of A, 256 steps of at most 14 rows, takes a third of a first-level cache of
// 48 KiB; the blocks of A and B, some 200 KB and 512 KB, half of a second level
// of 1 or 2 MiB. PITCH is a row of a panel of A, a little more than its steps, so that
// the rows fall into different sets of the cache.
enum { STEPS = 256, PITCH = STEPS + 16 };

#if defined(__clang__)
#define SHUFFLE(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#else
#define SHUFFLE(x, y, a, b, c, d) __builtin_shuffle(x, y, (lanes){a, b, c, d})
#endif

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t lanes __attribute__((vector_size(16)));

// Writes panel[p*width + i] = x[i*line + p] for i < lines, p < steps, and zeros for
// other i: four lines at a time, as transposed 4 x 4 blocks.
static void transpose_panel(float *panel, int width, const float *x, long line, int lines, int steps) {
    if (lines < width) memset(panel, 0, (size_t)steps * width * sizeof(float));
    int i = 0;
    for (; i + 4 <= lines; i += 4, x += 4 * line) {
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
    for (; i < lines; i++, x += line)
        for (int p = 0; p < steps; p++) panel[(long)p * width + i] = x[p];
}

static void transpose_panels(float *panels, int width, const float *x, long line, int lines, int steps) {
    for (; lines > 0; lines -= width, panels += (long)steps * width, x += width * line)
        transpose_panel(panels, width, x, line, lines < width ? lines : width, steps);
}

#if defined(__x86_64__)
#include "gemm_avx512.h"

static void transpose_16(float *panels, const float *x, long line, int lines, int steps) {
    transpose_panels(panels, 16, x, line, lines, steps);
}

#define NAME(x) x##_avx512
#define TEXT "avx512"
#define TARGET AVX512
#define LANES 16
#define ROWS 14
#define TRANSPOSE transpose_avx512
#define FEW few_avx512
#include "gemm_kernel.h"

#define NAME(x) x##_avx2
#define TEXT "avx2"
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8
#define ROWS 6
#define TRANSPOSE transpose_16
#define FEW 0
#include "gemm_kernel.h"
#endif

static void transpose_8(float *panels, const float *x, long line, int lines, int steps) {
    transpose_panels(panels, 8, x, line, lines, steps);
}

#define NAME(x) x##_portable
#define TEXT "portable"
#define TARGET
#define LANES 4
#define ROWS 6
#define TRANSPOSE transpose_8
#define FEW 0
#include "gemm_kernel.h"

const struct kernel *const *float32_kernels(void) {
    static const struct kernel *list[4];
    int n = 0;
#if defined(__x86_64__)
    if (avx512_supported()) list[n++] = &kernel_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) list[n++] = &kernel_avx2;
#endif
    list[n] = &kernel_portable;
    return list;
}
