// The driver's types and calls, declared here so that no header of the CUDA toolkit is
// needed. Values and layouts are those of cuda.h 12 and 13; a test compares them.
//
// For every call of calls.h there is a function of the same name here that goes through
// a table filled by caper_driver_load. Where the driver acts on the thread's current
// context, the function takes that context first and makes it current: goroutines wander
// between threads.
#ifndef CAPER_CUDA_DRIVER_H
#define CAPER_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr; // an address on the device
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;

typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
    CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
};

typedef unsigned int CUdevice_attribute;
enum {
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
    CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH = 120,
    CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED = 127,
};

typedef unsigned int CUfunction_attribute;
enum {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

typedef unsigned int CUmemPool_attribute;
enum {
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
    CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
    CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
};

typedef unsigned int CUstreamCaptureMode;
enum { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum { CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DISABLE_TIMING = 2, CU_MEMHOSTALLOC_PORTABLE = 1 };

typedef struct {
    unsigned int result;
    CUgraphNode error_node, error_from_node;
} CUgraphExecUpdateResultInfo;

enum {
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
};

typedef struct {
    unsigned int id;
    union {
        char bytes[64];
        uint32_t cluster[3];
        int number;
    } value __attribute__((aligned(8)));
} CUlaunchAttribute;

typedef struct {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    CUstream stream;
    CUlaunchAttribute *attributes;
    uint32_t attribute_count;
} CUlaunchConfig;

typedef unsigned int CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill;
enum { CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0, CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9 };
enum { CU_TENSOR_MAP_SWIZZLE_128B = 3, CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3 };

// 64 is the alignment in CUDA 12, 128 in 13: the caller sees to 128.
typedef struct { uint64_t opaque[16]; } CUtensorMap;

_Static_assert(sizeof(CUlaunchAttribute) == 72 && offsetof(CUlaunchAttribute, value) == 8, "layout of CUlaunchAttribute");
_Static_assert(sizeof(CUlaunchConfig) == 56 && offsetof(CUlaunchConfig, stream) == 32, "layout of CUlaunchConfig");
_Static_assert(sizeof(CUtensorMap) == 128, "layout of CUtensorMap");

struct caper_driver {
#define CALL(name, parameters, arguments) CUresult (*name) parameters;
#define IN_CONTEXT(name, parameters, arguments) CUresult (*name) parameters;
#include "calls.h"
#undef CALL
#undef IN_CONTEXT
    CUresult (*cuFuncGetParamInfo)(CUfunction, size_t, size_t *, size_t *); // null before CUDA 12.4
};
extern struct caper_driver caper_driver;

// Fills the table from a library. Returns null, or the name of a call that it lacks.
const char *caper_driver_load(void *library);

#define FOLLOWED_BY(...) , __VA_ARGS__
#define CALL(name, parameters, arguments) \
    static inline CUresult name parameters { return caper_driver.name arguments; }
#define IN_CONTEXT(name, parameters, arguments)                                \
    static inline CUresult name(CUcontext context FOLLOWED_BY parameters) {    \
        CUresult failed = caper_driver.cuCtxSetCurrent(context);               \
        return failed ? failed : caper_driver.name arguments;                  \
    }
#ifndef CAPER_DRIVER_TYPES_ONLY
#include "calls.h"
#endif
#undef CALL
#undef IN_CONTEXT
#undef FOLLOWED_BY

#endif
