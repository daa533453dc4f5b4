// Modules, functions, launches and tensor maps: kernels are the emulator's, found by name.
#include "mock.h"

#include <dlfcn.h>
#include <elf.h>

enum { LIBRARIES = 64, SHARED_PER_BLOCK = 227 << 10, MAX_PARAMETERS = 128 };

int mock_capability(void);

// Libraries of emulated kernels, as cuda/emulator builds them.
static struct {
    const struct caper_emu_kernel *kernels;
    uint32_t count;
    int (*run)(const struct caper_emu_launch *, void **, struct caper_emu_fault *);
    int (*tensor_map)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *, const uint32_t *, int, int, int, int, const char **);
} libraries[LIBRARIES];
static int library_count;
static uint64_t order_seed;

// Makes a library's kernels known. Returns 0, or -1 if it is none.
int caper_mock_add_kernels(const char *path) {
    if (library_count == LIBRARIES) return -1;
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!so) return -1;
    const struct caper_emu_kernel *(*kernels)(uint32_t *) = dlsym(so, "caper_emu_kernels");
    libraries[library_count].run = dlsym(so, "caper_emu_run");
    libraries[library_count].tensor_map = dlsym(so, "caper_emu_tensor_map");
    if (!kernels || !libraries[library_count].run || !libraries[library_count].tensor_map) return -1;
    libraries[library_count].kernels = kernels(&libraries[library_count].count);
    library_count++;
    return 0;
}

// Programs that know nothing of the mock, and are shown it by the variables of package cuda, get
// the kernels of the library that CAPER_MOCK_KERNELS names.
__attribute__((constructor)) static void add_named_kernels(void) {
    const char *path = getenv("CAPER_MOCK_KERNELS");
    if (path && caper_mock_add_kernels(path)) fprintf(stderr, "CAPER_MOCK_KERNELS=%s: no library of emulated kernels\n", path);
}

// The order in which blocks and threads of launches run; 0 is the natural one.
void caper_mock_set_order(uint64_t seed) { order_seed = seed; }

struct CUmod_st {
    struct object object;
    size_t size;
    char *image;
    CUfunction functions;
};

struct CUfunc_st {
    struct object object;
    CUfunction next; // of the module
    int library;
    const struct caper_emu_kernel *kernel;
    int dynamic_shared; // allowed
};

// The length of an ELF file, from its tables.
static size_t elf_size(const Elf64_Ehdr *e) {
    size_t sections = e->e_shoff + (size_t)e->e_shnum * e->e_shentsize;
    size_t segments = e->e_phoff + (size_t)e->e_phnum * e->e_phentsize;
    return sections > segments ? sections : segments;
}

// sm_80 runs on all of 8.x; from 9.0 on caper compiles for one capability only.
static int runs_on(int arch, int capability) { return arch == capability || (arch == 80 && capability / 10 == 8); }

// The architecture of a cubin: CUDA 13's ELF has it a byte higher.
static int arch_of(const Elf64_Ehdr *e) { return e->e_ident[EI_ABIVERSION] >= 8 ? e->e_flags >> 8 & 0xff : e->e_flags & 0xff; }

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    const Elf64_Ehdr *e = image;
    ENTER("%s", "");
    REFUSE_IF(memcmp(e->e_ident, ELFMAG, SELFMAG), CUDA_ERROR_INVALID_IMAGE);
    REFUSE_IF(!runs_on(arch_of(e), mock_capability()), CUDA_ERROR_NO_BINARY_FOR_GPU);
    CUmodule m = object_new(MODULE, sizeof *m);
    m->size = elf_size(e);
    m->image = malloc(m->size);
    memcpy(m->image, image, m->size);
    *module = m;
    return 0;
}

CUresult cuModuleUnload(CUmodule m) {
    ENTER("%s", "");
    REFUSE_IF(!object_alive(MODULE, m), CUDA_ERROR_INVALID_HANDLE);
    for (CUfunction f = m->functions, next; f; f = next) next = f->next, object_free(f);
    free(m->image);
    object_free(m);
    return 0;
}

static int has_kernel(CUmodule m, const char *name) {
    const size_t n = strlen(name);
    for (size_t i = 0; i + n < m->size; i++)
        if (memcmp(m->image + i, name, n) == 0) return 1;
    return 0;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule m, const char *name) {
    ENTER("%s", name);
    REFUSE_IF(!object_alive(MODULE, m), CUDA_ERROR_INVALID_HANDLE);
    REFUSE_IF(!has_kernel(m, name), CUDA_ERROR_NOT_FOUND);
    for (int l = library_count - 1; l >= 0; l--)
        for (uint32_t k = 0; k < libraries[l].count; k++)
            if (strcmp(libraries[l].kernels[k].name, name) == 0) {
                CUfunction f = object_new(FUNCTION, sizeof *f);
                f->next = m->functions, m->functions = f;
                f->library = l, f->kernel = &libraries[l].kernels[k], f->dynamic_shared = 48 << 10;
                *function = f;
                return 0;
            }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size) {
    if (index >= f->kernel->params) return CUDA_ERROR_INVALID_VALUE;
    *offset = 0;
    for (size_t i = 0; i <= index; i++) {
        const struct caper_emu_param *p = &f->kernel->param[i];
        *offset = (*offset + p->align - 1) / p->align * p->align + (i < index ? p->bytes : 0);
    }
    *size = f->kernel->param[index].bytes;
    return 0;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction f) {
    ENTER("%u %s", attribute, f->kernel->name);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = f->kernel->max_threads; return 0;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; return 0;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = 0; return 0;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value) {
    ENTER("%s %u %d", f->kernel->name, attribute, value);
    REFUSE_IF(attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > SHARED_PER_BLOCK, CUDA_ERROR_INVALID_VALUE);
    f->dynamic_shared = value;
    return 0;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads, size_t shared) {
    ENTER("%s %d %zu", f->kernel->name, threads, shared);
    int by_threads = 2048 / threads, by_shared = (228 << 10) / (shared + 1024);
    *blocks = by_threads < by_shared ? by_threads : by_shared;
    return 0;
}

// ---- Launches

struct launch {
    CUfunction function;
    struct caper_emu_launch how;
    uint32_t offsets[MAX_PARAMETERS];
    char values[] __attribute__((aligned(128)));
};

static CUresult run_kernel(void *data) {
    struct launch *l = data;
    struct caper_emu_fault fault;
    void *params[MAX_PARAMETERS];
    for (uint32_t i = 0; i < l->function->kernel->params; i++) params[i] = l->values + l->offsets[i];
    if (!libraries[l->function->library].run(&l->how, params, &fault)) return 0;
    snprintf(mock_fault, sizeof mock_fault, "%s", fault.message);
    return CUDA_ERROR_LAUNCH_FAILED;
}

// What the driver would refuse at once.
static CUresult refusal(const CUlaunchConfig *c, CUfunction f) {
    const uint64_t threads = (uint64_t)c->block[0] * c->block[1] * c->block[2];
    REFUSE_IF(!threads || threads > f->kernel->max_threads || threads > 1024, CUDA_ERROR_INVALID_VALUE);
    REFUSE_IF(!c->grid[0] || !c->grid[1] || !c->grid[2], CUDA_ERROR_INVALID_VALUE);
    REFUSE_IF((int)c->shared_bytes > f->dynamic_shared, CUDA_ERROR_INVALID_VALUE);
    for (uint32_t i = 0; i < c->attribute_count; i++) {
        const CUlaunchAttribute *a = &c->attributes[i];
        if (a->id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
        const uint32_t *n = a->value.cluster;
        REFUSE_IF(n[0] * n[1] * n[2] > 8, CUDA_ERROR_INVALID_CLUSTER_SIZE);
        for (int d = 0; d < 3; d++) REFUSE_IF(!n[d] || c->grid[d] % n[d], CUDA_ERROR_INVALID_CLUSTER_SIZE);
    }
    return 0;
}

static void describe(const CUlaunchConfig *c, char *text, size_t size) {
    int n = snprintf(text, size, "grid %u %u %u block %u %u %u shared %u", c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared_bytes);
    for (uint32_t i = 0; i < c->attribute_count; i++) {
        const CUlaunchAttribute *a = &c->attributes[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            n += snprintf(text + n, size - n, " cluster %u %u %u", a->value.cluster[0], a->value.cluster[1], a->value.cluster[2]);
        if (a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) n += snprintf(text + n, size - n, " cooperative");
    }
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **parameters, void **extra) {
    char text[256];
    describe(c, text, sizeof text);
    ENTER("%s %s", f->kernel->name, text);
    REFUSE_IF(extra || f->kernel->params > MAX_PARAMETERS, CUDA_ERROR_INVALID_VALUE);
    CUresult refused = refusal(c, f);
    if (refused) return refused;

    size_t offset, bytes = 0;
    for (uint32_t i = 0; i < f->kernel->params; i++) bytes = (bytes + f->kernel->param[i].align - 1) / f->kernel->param[i].align * f->kernel->param[i].align + f->kernel->param[i].bytes;
    const size_t size = sizeof(struct launch) + bytes;
    struct launch *l = aligned_alloc(128, (size + 127) / 128 * 128);
    memset(l, 0, size);
    l->function = f;
    l->how = (struct caper_emu_launch){
        .kernel = f->kernel->name, .grid = {c->grid[0], c->grid[1], c->grid[2]}, .block = {c->block[0], c->block[1], c->block[2]},
        .shared_bytes = c->shared_bytes, .seed = order_seed,
    };
    for (uint32_t i = 0; i < f->kernel->params; i++) {
        size_t n;
        cuFuncGetParamInfo(f, i, &offset, &n);
        l->offsets[i] = offset;
        memcpy(l->values + offset, parameters[i], n);
    }
    CUresult failed = enqueue(c->stream, run_kernel, l, size);
    free(l);
    return failed;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *sizes, const cuuint64_t *strides,
                                const cuuint32_t *box, const cuuint32_t *element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    ENTER("%u %u %u", type, rank, swizzle);
    const char *reason;
    REFUSE_IF((uintptr_t)map % 128 || !library_count, CUDA_ERROR_INVALID_VALUE);
    return libraries[0].tensor_map(map, type, rank, address, sizes, strides, box, element_strides, interleave, swizzle, promotion, fill, &reason) ? CUDA_ERROR_INVALID_VALUE : 0;
}
