// Memory of the pretended GPUs: the emulator's, which is NaN until written and ends at an
// unmapped page. One pool a GPU.
#include "mock.h"

size_t mock_total_memory(void);

struct CUmemPoolHandle_st {
    uint64_t used, used_peak, reserved, reserved_peak, keep;
};
static struct CUmemPoolHandle_st pools[DEVICES];

enum owner { DIRECT, POOL, PINNED };

static struct allocation {
    struct allocation *next;
    void *at;
    size_t bytes;
    enum owner owner;
    int device;
} *allocations;
static size_t limit; // of all memory; 0 for what a GPU has

// Lets each GPU have this much memory; 0 for the usual.
void caper_mock_limit_memory(size_t bytes) { limit = bytes; }

size_t memory_live(void) {
    size_t n = 0;
    for (struct allocation *a = allocations; a; a = a->next) n++;
    return n;
}

static size_t taken(int device) {
    size_t n = 0;
    for (struct allocation *a = allocations; a; a = a->next)
        if (a->owner != PINNED && a->device == device) n += a->bytes;
    return n;
}

static size_t room(void) { return limit ? limit : mock_total_memory(); }

static struct allocation **find(const void *at) {
    struct allocation **a = &allocations;
    while (*a && (*a)->at != at) a = &(*a)->next;
    return a;
}

int memory_holds(CUdeviceptr at, size_t bytes) {
    for (struct allocation *a = allocations; a; a = a->next)
        if (a->owner != PINNED && at >= (CUdeviceptr)a->at && at + bytes <= (CUdeviceptr)a->at + a->bytes) return 1;
    return 0;
}

static void *take(size_t bytes, enum owner owner, int device) {
    if (owner != PINNED && taken(device) + bytes > room()) return 0;
    struct allocation *a = malloc(sizeof *a);
    *a = (struct allocation){allocations, caper_emu_alloc(bytes), bytes, owner, device};
    if (!a->at) {
        free(a);
        return 0;
    }
    allocations = a;
    struct CUmemPoolHandle_st *p = &pools[device];
    if (owner == POOL) {
        p->used += bytes;
        if (p->used > p->used_peak) p->used_peak = p->used;
        if (p->used > p->reserved) p->reserved = p->used;
        if (p->reserved > p->reserved_peak) p->reserved_peak = p->reserved;
    }
    return a->at;
}

static CUresult give(const void *at, enum owner owner) {
    struct allocation **a = find(at), *gone = *a;
    REFUSE_IF(!gone || gone->owner != owner, CUDA_ERROR_INVALID_VALUE);
    if (owner == POOL) pools[gone->device].used -= gone->bytes;
    *a = gone->next;
    caper_emu_free(gone->at);
    free(gone);
    return 0;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    ENTER("%s", "");
    *total = room();
    *free_bytes = room() - taken(current()->device);
    return 0;
}

CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t bytes) {
    ENTER("%zu", bytes);
    REFUSE_IF(!bytes, CUDA_ERROR_INVALID_VALUE);
    *memory = (CUdeviceptr)take(bytes, DIRECT, current()->device);
    return *memory ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree_v2(CUdeviceptr memory) {
    ENTER("%s", "");
    CUresult failed = drain_all();
    return failed ? failed : give((void *)memory, DIRECT);
}

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned int flags) {
    ENTER("%zu %u", bytes, flags);
    *memory = take(bytes, PINNED, 0);
    return *memory ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *memory) {
    ENTER("%s", "");
    return give(memory, PINNED);
}

// ---- Pools

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    ENTER("%d", device);
    *pool = &pools[device];
    return 0;
}

CUresult cuMemAllocAsync(CUdeviceptr *memory, size_t bytes, CUstream stream) {
    ENTER("%zu", bytes);
    REFUSE_IF(!bytes, CUDA_ERROR_INVALID_VALUE);
    REFUSE_IF(!object_alive(STREAM, stream), CUDA_ERROR_INVALID_HANDLE);
    *memory = (CUdeviceptr)take(bytes, POOL, current()->device);
    return *memory ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult run_free(void *at) { return give(*(void **)at, POOL); }

CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream) {
    ENTER("%s", "");
    struct allocation *a = *find((void *)memory);
    REFUSE_IF(!a || a->owner != POOL, CUDA_ERROR_INVALID_VALUE);
    return enqueue(stream, run_free, &memory, sizeof memory);
}

static uint64_t *pool_value(CUmemoryPool pool, CUmemPool_attribute attribute) {
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return &pool->keep;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return &pool->reserved_peak;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return &pool->used_peak;
    }
    return 0;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    uint64_t v = *(uint64_t *)value;
    ENTER("%u %lu", attribute, (unsigned long)v);
    uint64_t *to = pool_value(pool, attribute);
    REFUSE_IF(!to || (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && v), CUDA_ERROR_INVALID_VALUE);
    *to = attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used : attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ? pool->reserved : v;
    return 0;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    ENTER("%u", attribute);
    uint64_t *from = pool_value(pool, attribute);
    REFUSE_IF(!from, CUDA_ERROR_INVALID_VALUE);
    *(uint64_t *)value = *from;
    return 0;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
    ENTER("%zu", keep);
    if (pool->reserved > keep) pool->reserved = keep > pool->used ? keep : pool->used;
    return 0;
}

// ---- Copies

struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

static CUresult run_copy(void *data) {
    struct copy *c = data;
    memcpy(c->to, c->from, c->bytes);
    return 0;
}

static CUresult copy(void *to, const void *from, size_t bytes, CUstream stream) {
    struct copy c = {to, from, bytes};
    return enqueue(stream, run_copy, &c, sizeof c);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    ENTER("%zu", bytes);
    REFUSE_IF(!memory_holds(to, bytes), CUDA_ERROR_INVALID_VALUE);
    return copy((void *)to, from, bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    ENTER("%zu", bytes);
    REFUSE_IF(!memory_holds(from, bytes), CUDA_ERROR_INVALID_VALUE);
    return copy(to, (void *)from, bytes, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    ENTER("%zu", bytes);
    REFUSE_IF(!memory_holds(to, bytes) || !memory_holds(from, bytes), CUDA_ERROR_INVALID_VALUE);
    return copy((void *)to, (void *)from, bytes, stream);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes, CUstream stream) {
    ENTER("%zu %d %d", bytes, to_context->device, from_context->device);
    REFUSE_IF(!memory_holds(to, bytes) || !memory_holds(from, bytes), CUDA_ERROR_INVALID_VALUE);
    return copy((void *)to, (void *)from, bytes, stream);
}

struct fill {
    void *to;
    uint32_t value;
    int width;
    size_t count;
};

static CUresult run_fill(void *data) {
    struct fill *f = data;
    if (f->width == 1) memset(f->to, f->value, f->count);
    else
        for (size_t i = 0; i < f->count; i++) ((uint32_t *)f->to)[i] = f->value;
    return 0;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    ENTER("%u %zu", value, count);
    REFUSE_IF(!memory_holds(to, count), CUDA_ERROR_INVALID_VALUE);
    struct fill f = {(void *)to, value, 1, count};
    return enqueue(stream, run_fill, &f, sizeof f);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
    ENTER("%u %zu", value, count);
    REFUSE_IF(to % 4 || !memory_holds(to, 4 * count), CUDA_ERROR_INVALID_VALUE);
    struct fill f = {(void *)to, value, 4, count};
    return enqueue(stream, run_fill, &f, sizeof f);
}
