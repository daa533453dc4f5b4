// Kernels for the tests of launches, behind the emulator's interface but without it.
#include <stdio.h>
#include <string.h>

#include "emulator/emulator.h"

#define EXPORT __attribute__((visibility("default")))

static const struct caper_emu_param every_type[] = {
    {'p', 8, 8}, {'i', 4, 4}, {'u', 4, 4}, {'i', 8, 8}, {'u', 8, 8}, {'f', 4, 4}, {'f', 8, 8}, {'s', 128, 128}, {'i', 4, 4},
};
static const struct caper_emu_param add[] = {{'p', 8, 8}, {'f', 4, 4}, {'i', 4, 4}};
static const struct caper_emu_param broken[] = {{'i', 4, 4}};
static const struct caper_emu_kernel kernels[] = {{"every_type", 9, every_type, 256}, {"add", 3, add, 256}, {"broken", 1, broken, 256}};

EXPORT const struct caper_emu_kernel *caper_emu_kernels(uint32_t *count) {
    *count = sizeof kernels / sizeof *kernels;
    return kernels;
}

// Writes each parameter to 128 bytes of its own.
static int run_every_type(void **params) {
    char *out = *(char **)params[0];
    for (int i = 0; i < 9; i++) {
        if ((uintptr_t)params[i] % every_type[i].align) return 1;
        memcpy(out + 128 * i, params[i], every_type[i].bytes);
    }
    return 0;
}

static int run_add(void **params) {
    float *x = *(float **)params[0];
    for (int i = 0; i < *(int *)params[2]; i++) x[i] += *(float *)params[1];
    return 0;
}

EXPORT int caper_emu_run(const struct caper_emu_launch *l, void **params, struct caper_emu_fault *fault) {
    snprintf(fault->message, sizeof fault->message, "kernels.c:1: kernel %s: planted", l->kernel);
    if (strcmp(l->kernel, "every_type") == 0) return run_every_type(params);
    return strcmp(l->kernel, "add") == 0 ? run_add(params) : 1;
}

EXPORT int caper_emu_tensor_map(void *map, int type, uint32_t rank, void *address, const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                                const uint32_t *element_strides, int interleave, int swizzle, int promotion, int fill, const char **reason) {
    (void)sizes, (void)strides, (void)box, (void)element_strides, (void)interleave, (void)promotion, (void)fill, (void)reason;
    memset(map, 0, 128);
    memcpy(map, &(uint64_t[]){(uint64_t)address, type, rank, swizzle}, 32);
    return 0;
}
