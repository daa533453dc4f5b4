// Two pretended GPUs of compute capability 9.0, and their primary contexts.
#include "mock.h"

static int version = 13000;
static int capability = 90;
static size_t total_memory = 8ul << 30;

char mock_fault[1024];

static struct CUctx_st *contexts[DEVICES];
static __thread CUcontext thread_context;

CUcontext current(void) { return object_alive(CONTEXT, thread_context) ? thread_context : 0; }

// Takes a kernel's mistake back, as only a new process can on a GPU.
void caper_mock_recover(void) {
    for (int d = 0; d < DEVICES; d++)
        if (contexts[d]) contexts[d]->lost = 0;
}

// What the driver says it is: 13000 is CUDA 13.0. Compute capability: 90 is 9.0.
void caper_mock_set(int driver_version, int compute_capability) {
    version = driver_version;
    capability = compute_capability;
}

size_t mock_total_memory(void) { return total_memory; }
int mock_capability(void) { return capability; }

CUresult cuInit(unsigned int flags) {
    ENTER("%u", flags);
    return 0;
}

CUresult cuDriverGetVersion(int *v) {
    ENTER("%s", "");
    *v = version;
    return 0;
}

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph update was not performed"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster size"},
};

CUresult cuGetErrorName(CUresult code, const char **name) {
    *name = 0;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) *name = errors[i].name;
    return *name ? 0 : CUDA_ERROR_INVALID_VALUE;
}

// The driver has nothing to say about a kernel's mistake; the emulator has.
CUresult cuGetErrorString(CUresult code, const char **text) {
    *text = 0;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) *text = errors[i].text;
    if (code == CUDA_ERROR_LAUNCH_FAILED && *mock_fault) *text = mock_fault;
    return *text ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *count) {
    ENTER("%s", "");
    *count = DEVICES;
    return 0;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    ENTER("%d", ordinal);
    REFUSE_IF(ordinal < 0 || ordinal >= DEVICES, CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    return 0;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    ENTER("%d", device);
    snprintf(name, size, "Mock H200");
    return 0;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    ENTER("%d", device);
    *bytes = total_memory;
    return 0;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    ENTER("%u %d", attribute, device);
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; return 0;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 50 << 20; return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = capability / 10; return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = capability % 10; return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = 228 << 10; return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 227 << 10; return 0;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: *value = 1 << 10; return 0;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = 1; return 0;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED: *value = capability >= 90; return 0;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    ENTER("%d", device);
    if (!contexts[device]) {
        contexts[device] = object_new(CONTEXT, sizeof *contexts[device]);
        contexts[device]->device = device;
    }
    contexts[device]->retained++;
    *context = contexts[device];
    return 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    ENTER("%d", device);
    CUcontext c = contexts[device];
    REFUSE_IF(!c, CUDA_ERROR_INVALID_CONTEXT);
    if (--c->retained == 0) {
        object_free(c);
        contexts[device] = 0;
    }
    return 0;
}

CUresult cuCtxSetCurrent(CUcontext context) { // not written down: it comes before every call
    pthread_mutex_lock(&mock_lock);
    const int alive = object_alive(CONTEXT, context);
    pthread_mutex_unlock(&mock_lock);
    if (alive) thread_context = context;
    return alive ? 0 : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    ENTER("%s", "");
    *least = 0;
    *greatest = -5;
    return 0;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    ENTER("%d %d", device, peer);
    *can = device != peer;
    return 0;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    static int enabled[DEVICES];
    ENTER("%d %u", peer->device, flags);
    REFUSE_IF(enabled[peer->device], CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    enabled[peer->device] = 1;
    return 0;
}
