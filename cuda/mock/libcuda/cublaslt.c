// A pretended cuBLASLt: column-major products in double precision, done in the stream.
#include <math.h>

#include "mock.h"

#include "cublaslt.h"

struct cublasLtContext { struct object object; };
struct cublasLtMatmulDescOpaque {
    struct object object;
    unsigned int compute, scale;
    int trans_a, trans_b, epilogue;
    void *vector;
};
struct cublasLtMatrixLayoutOpaque {
    struct object object;
    unsigned int type;
    uint64_t rows, cols;
    int64_t ld;
};
struct cublasLtMatmulPreferenceOpaque {
    struct object object;
    uint64_t workspace;
    uint32_t schemes, align[4];
};

size_t cublasLtGetVersion(void) { return 130100; }
const char *cublasLtGetStatusName(cublasStatus_t s) {
    return s == 1 ? "CUBLAS_STATUS_NOT_INITIALIZED" : s == 7 ? "CUBLAS_STATUS_INVALID_VALUE" : s == 15 ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_INTERNAL_ERROR";
}

#define DESTROY(name, type)           \
    cublasStatus_t name(type object) { \
        ENTER("%s", "");              \
        object_free(object);          \
        return 0;                     \
    }
DESTROY(cublasLtDestroy, cublasLtHandle_t)
DESTROY(cublasLtMatmulDescDestroy, cublasLtMatmulDesc_t)
DESTROY(cublasLtMatrixLayoutDestroy, cublasLtMatrixLayout_t)
DESTROY(cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreference_t)

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    ENTER("%s", "");
    REFUSE_IF(!current(), CUBLAS_STATUS_NOT_INITIALIZED);
    *handle = object_new(DESCRIPTOR, sizeof **handle);
    return 0;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale) {
    ENTER("%u %u", compute, scale);
    cublasLtMatmulDesc_t d = object_new(DESCRIPTOR, sizeof *d);
    d->compute = compute, d->scale = scale, d->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    *desc = d;
    return 0;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t size) {
    ENTER("%u %zu", attribute, size);
    REFUSE_IF(size != (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? 8 : 4), CUBLAS_STATUS_INVALID_VALUE);
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: d->trans_a = *(int *)value; return 0;
    case CUBLASLT_MATMUL_DESC_TRANSB: d->trans_b = *(int *)value; return 0;
    case CUBLASLT_MATMUL_DESC_EPILOGUE: d->epilogue = *(int *)value; return 0;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: d->vector = *(void **)value; return 0;
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld) {
    ENTER("%u %lu %lu %ld", type, (unsigned long)rows, (unsigned long)cols, (long)ld);
    REFUSE_IF(type != CUDA_R_16BF && type != CUDA_R_32F, CUBLAS_STATUS_NOT_SUPPORTED);
    cublasLtMatrixLayout_t l = object_new(DESCRIPTOR, sizeof *l);
    l->type = type, l->rows = rows, l->cols = cols, l->ld = ld;
    *layout = l;
    return 0;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
    ENTER("%s", "");
    *preference = object_new(DESCRIPTOR, sizeof **preference);
    return 0;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t size) {
    ENTER("%u %zu", attribute, size);
    REFUSE_IF(size != (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8 : 4), CUBLAS_STATUS_INVALID_VALUE);
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) p->workspace = *(uint64_t *)value;
    else if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) p->schemes = *(uint32_t *)value;
    else if (attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES < 4) p->align[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] = *(uint32_t *)value;
    else return CUBLAS_STATUS_INVALID_VALUE;
    return 0;
}

static int matrices_fit(cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c) {
    const uint64_t m = d->trans_a ? a->cols : a->rows, k = d->trans_a ? a->rows : a->cols;
    const uint64_t n = d->trans_b ? b->rows : b->cols, other_k = d->trans_b ? b->cols : b->rows;
    return m == c->rows && n == c->cols && k == other_k && a->type == b->type && a->ld >= (int64_t)a->rows && b->ld >= (int64_t)b->rows && c->ld >= (int64_t)c->rows;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out, cublasLtMatmulPreference_t p, int asked,
                                              cublasLtMatmulHeuristicResult_t *results, int *found) {
    ENTER("%d", asked);
    REFUSE_IF(!object_alive(DESCRIPTOR, handle) || !matrices_fit(d, a, b, c) || out->rows != c->rows, CUBLAS_STATUS_INVALID_VALUE);
    *found = p->schemes == 0 && p->align[0] >= 16;
    results->state = 0;
    results->algo.data[0] = 1;
    return 0;
}

struct product {
    struct cublasLtMatmulDescOpaque desc;
    struct cublasLtMatrixLayoutOpaque a, b, c;
    const void *at_a, *at_b;
    void *at_c;
    float beta;
};

static double get(const void *x, unsigned type, size_t i) {
    if (type == CUDA_R_32F) return ((const float *)x)[i];
    const uint32_t bits = (uint32_t)((const uint16_t *)x)[i] << 16;
    float v;
    memcpy(&v, &bits, 4);
    return v;
}

static void put(void *x, unsigned type, size_t i, double value) {
    const float v = value;
    if (type == CUDA_R_32F) {
        ((float *)x)[i] = v;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &v, 4);
    ((uint16_t *)x)[i] = isnan(v) ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static CUresult run_product(void *data) {
    const struct product *p = data;
    const uint64_t k = p->desc.trans_a ? p->a.rows : p->a.cols;
    const size_t a_row = p->desc.trans_a ? p->a.ld : 1, a_k = p->desc.trans_a ? 1 : p->a.ld;
    const size_t b_col = p->desc.trans_b ? 1 : p->b.ld, b_k = p->desc.trans_b ? p->b.ld : 1;
    for (uint64_t j = 0; j < p->c.cols; j++) {
        double column = 0;
        for (uint64_t l = 0; l < k; l++) column += get(p->at_b, p->b.type, j * b_col + l * b_k);
        if (p->desc.epilogue == CUBLASLT_EPILOGUE_BGRADB) put(p->desc.vector, p->c.type, j, column);
        for (uint64_t i = 0; i < p->c.rows; i++) {
            double sum = 0;
            for (uint64_t l = 0; l < k; l++) sum += get(p->at_a, p->a.type, i * a_row + l * a_k) * get(p->at_b, p->b.type, j * b_col + l * b_k);
            const size_t at = i + j * p->c.ld;
            if (p->beta) sum += p->beta * get(p->at_c, p->c.type, at);
            if (p->desc.epilogue == CUBLASLT_EPILOGUE_BIAS) sum += get(p->desc.vector, p->c.type, i);
            put(p->at_c, p->c.type, at, sum);
        }
    }
    return 0;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *out,
                              cublasLtMatrixLayout_t out_layout, const cublasLtMatmulAlgo_t *algo, void *workspace, size_t size, cudaStream_t stream) {
    ENTER("%lu %lu", (unsigned long)c_layout->rows, (unsigned long)c_layout->cols);
    REFUSE_IF(!object_alive(DESCRIPTOR, handle) || !algo->data[0] || !workspace || !size || *(float *)alpha != 1, CUBLAS_STATUS_INVALID_VALUE);
    REFUSE_IF(c != out || c_layout != out_layout || !matrices_fit(d, a_layout, b_layout, c_layout), CUBLAS_STATUS_INVALID_VALUE);
    struct product p = {*d, *a_layout, *b_layout, *c_layout, a, b, out, *(float *)beta};
    return enqueue(stream, run_product, &p, sizeof p) ? 14 : 0;
}
