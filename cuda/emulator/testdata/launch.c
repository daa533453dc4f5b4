// Launches vector_sum of the library that its argument names, first well, then past the end.
#include <dlfcn.h>
#include <stdio.h>

#include "emulator.h"

int main(int argc, char **argv) {
    void *so = argc == 2 ? dlopen(argv[1], RTLD_NOW) : 0;
    if (!so) return fprintf(stderr, "%s\n", dlerror()), 1;
    const struct caper_emu_kernel *(*kernels)(uint32_t *) = dlsym(so, "caper_emu_kernels");
    int (*run)(const struct caper_emu_launch *, void **, struct caper_emu_fault *) = dlsym(so, "caper_emu_run");
    void *(*alloc)(size_t) = dlsym(so, "caper_emu_alloc");
    void (*release)(void *) = dlsym(so, "caper_emu_free");

    uint32_t n;
    const struct caper_emu_kernel *k = kernels(&n);
    printf("%s %u:", k->name, k->max_threads);
    for (uint32_t i = 0; i < k->params; i++) printf(" %c%u", k->param[i].kind, k->param[i].bytes);
    printf("\n");

    int elements = 1000;
    float *x = alloc(4 * elements), *partial = alloc(8), *sum = alloc(4);
    uint32_t *count = alloc(4);
    *count = 0;
    for (int i = 0; i < elements; i++) x[i] = i;
    void *params[] = {&x, &partial, &count, &sum, &elements};
    struct caper_emu_launch launch = {.kernel = "vector_sum", .grid = {2, 1, 1}, .block = {256, 1, 1}, .seed = 7};
    struct caper_emu_fault fault;
    if (run(&launch, params, &fault)) return fprintf(stderr, "%s\n", fault.message), 1;
    printf("sum %g\n", *sum);

    elements = 1001;
    if (!run(&launch, params, &fault)) return 1;
    printf("%s\n", fault.message);
    release(x);
    return 0;
}
