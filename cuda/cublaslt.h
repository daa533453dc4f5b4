// cuBLASLt's calls, and products of row-major matrices by them.
#ifndef CAPER_CUDA_CUBLASLT_H
#define CAPER_CUDA_CUBLASLT_H

#include "driver.h"

typedef int cublasStatus_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtMatmulDescOpaque *cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayoutOpaque *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulPreferenceOpaque *cublasLtMatmulPreference_t;

typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;
typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspace;
    cublasStatus_t state;
    float waves;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96, "layout of cublasLtMatmulHeuristicResult_t");

typedef unsigned int cublasComputeType_t, cudaDataType_t, cudaDataType, cublasLtMatmulDescAttributes_t, cublasLtMatmulPreferenceAttributes_t;
typedef CUstream cudaStream_t;

enum { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_INVALID_VALUE = 7, CUBLAS_STATUS_NOT_SUPPORTED = 15 };
enum { CUDA_R_32F = 0, CUDA_R_16BF = 14, CUBLAS_COMPUTE_32F = 68 };
enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum {
    CUBLASLT_MATMUL_DESC_TRANSA = 3,
    CUBLASLT_MATMUL_DESC_TRANSB = 4,
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
};
enum { CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_BIAS = 4, CUBLASLT_EPILOGUE_BGRADB = 512 };
enum {
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
    CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, // B, C, D: 6, 7, 8
};

#define CUBLASLT_CALLS(CALL)                                                                                                      \
    CALL(cublasLtCreate, (cublasLtHandle_t *handle))                                                                              \
    CALL(cublasLtDestroy, (cublasLtHandle_t handle))                                                                              \
    CALL(cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale))               \
    CALL(cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc))                                                                  \
    CALL(cublasLtMatmulDescSetAttribute,                                                                                          \
         (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t size))                   \
    CALL(cublasLtMatrixLayoutCreate, (cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)) \
    CALL(cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout))                                                            \
    CALL(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t *preference))                                                \
    CALL(cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference))                                                \
    CALL(cublasLtMatmulPreferenceSetAttribute,                                                                                    \
         (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t size)) \
    CALL(cublasLtMatmulAlgoGetHeuristic,                                                                                          \
         (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,                 \
          cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int asked,                   \
          cublasLtMatmulHeuristicResult_t *results, int *found))                                                                  \
    CALL(cublasLtMatmul,                                                                                                          \
         (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,  \
          const void *b, cublasLtMatrixLayout_t b_layout, const void *beta, const void *c, cublasLtMatrixLayout_t c_layout,       \
          void *d, cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_size,     \
          cudaStream_t stream))

struct caper_cublaslt {
#define CALL(name, parameters) cublasStatus_t (*name) parameters;
    CUBLASLT_CALLS(CALL)
#undef CALL
    size_t (*cublasLtGetVersion)(void);
    const char *(*cublasLtGetStatusName)(cublasStatus_t);
};
extern struct caper_cublaslt caper_cublaslt;

// Fills the table from a library. Returns null, or the name of a call that it lacks.
const char *caper_cublaslt_load(void *library);

// c [m, n] = op(a) [m, k] op(b) [k, n] + beta c, all row-major; lda, ldb and ldc are the
// elements from one row to the next.
struct caper_product {
    uint64_t m, n, k;
    int64_t lda, ldb, ldc;
    int trans_a, trans_b;
    unsigned int in, out; // types of a and b, and of c
    int epilogue;
    uint32_t align_a, align_b, align_c; // of the pointers, in bytes
};

// How a product is computed. Parts are null until they are made.
struct caper_plan {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c; // of the column-major product, whose a is our b
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulAlgo_t algo;
};

// A call that failed, or null, and its status.
struct caper_blas_outcome {
    const char *call;
    cublasStatus_t status;
};

struct caper_blas_outcome caper_plan_describe(struct caper_plan *, const struct caper_product *, uint64_t workspace);
struct caper_blas_outcome caper_plan_choose(struct caper_plan *, CUcontext, cublasLtHandle_t);
struct caper_blas_outcome caper_plan_run(const struct caper_plan *, CUcontext, cublasLtHandle_t, CUstream, CUdeviceptr a, CUdeviceptr b,
                                         CUdeviceptr c, CUdeviceptr bias, float beta, CUdeviceptr workspace, size_t workspace_size);
void caper_plan_destroy(struct caper_plan *);

#endif
