// The C interface of a library that package emulator has built. Such a library is
// self-contained: a C program may dlopen it, find these names and launch kernels.
// Launches of one library wait for each other. Any thread may call.
#ifndef CAPER_EMULATOR_H
#define CAPER_EMULATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// How a kernel is launched. seed chooses the order in which blocks and threads run; 0 is
// their natural order.
struct caper_emu_launch {
    const char *kernel;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes; // dynamic
    uint64_t seed;
};

// What a kernel did wrong. message is one line that starts with file:line, names the
// kernel, and ends with block and thread. file is empty and line 0 when the launch itself
// was wrong.
struct caper_emu_fault {
    char file[256];
    int32_t line;
    uint32_t block[3], thread[3];
    char message[1024];
};

// A parameter: kind is 'p' pointer, 'i' signed and 'u' unsigned integer, 'f' float,
// 's' anything else, such as a TensorMap. Sizes and alignments are those on the card.
struct caper_emu_param {
    char kind;
    uint32_t bytes, align;
};

struct caper_emu_kernel {
    const char *name;
    uint32_t params;
    const struct caper_emu_param *param;
    uint32_t max_threads; // of __launch_bounds__, 1024 without
};

// The kernels of the library, and their number.
const struct caper_emu_kernel *caper_emu_kernels(uint32_t *count);

// Runs a kernel to its end. params[i] points at the value of parameter i, as in
// cuLaunchKernel. Returns 0, or 1 and fills *fault.
int caper_emu_run(const struct caper_emu_launch *launch, void **params, struct caper_emu_fault *fault);

// Memory for kernels: a multiple of 16, ends at an unmapped page (to 16 bytes), every
// byte 0xff, which is NaN in bf16 and float32. NULL when there is none.
void *caper_emu_alloc(size_t bytes);
void caper_emu_free(void *memory);

// Writes a tensor map. Arguments and rules are cuTensorMapEncodeTiled's (data types 0
// u8, 7 f32, 9 bf16; swizzles 0 none, 1, 2, 3 for 32, 64, 128 bytes). Returns 0, or 1 and
// sets *reason.
int caper_emu_tensor_map(void *map, int type, uint32_t rank, void *address, const uint64_t *sizes,
                         const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides,
                         int interleave, int swizzle, int promotion, int fill, const char **reason);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
