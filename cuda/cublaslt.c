// cuBLASLt counts columns first. A row-major matrix is the transpose of a column-major one
// in the same memory, so c = op(a) op(b) by rows is c^T = op(b)^T op(a)^T by columns: the
// operands change places and keep their op. In a column-major product the bias runs along
// rows, which are our columns, as a linear layer wants it.
#include "cublaslt.h"

#include "library.h"

struct caper_cublaslt caper_cublaslt;

const char *caper_cublaslt_load(void *library) {
#define CALL(name, ...)                                         \
    caper_cublaslt.name = caper_library_symbol(library, #name); \
    if (!caper_cublaslt.name) return #name;
    CUBLASLT_CALLS(CALL)
    CALL(cublasLtGetVersion)
    CALL(cublasLtGetStatusName)
#undef CALL
    return 0;
}

// Calls and, on failure, leaves the function that it stands in.
#define TRY(call, ...)                                          \
    do {                                                        \
        cublasStatus_t status = caper_cublaslt.call(__VA_ARGS__); \
        if (status) return (struct caper_blas_outcome){#call, status}; \
    } while (0)

static const struct caper_blas_outcome done = {0, 0};

static struct caper_blas_outcome describe_product(struct caper_plan *plan, const struct caper_product *p) {
    const int ours_b = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, ours_a = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    TRY(cublasLtMatmulDescCreate, &plan->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    TRY(cublasLtMatmulDescSetAttribute, plan->desc, CUBLASLT_MATMUL_DESC_TRANSA, &ours_b, sizeof ours_b);
    TRY(cublasLtMatmulDescSetAttribute, plan->desc, CUBLASLT_MATMUL_DESC_TRANSB, &ours_a, sizeof ours_a);
    TRY(cublasLtMatmulDescSetAttribute, plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &p->epilogue, sizeof p->epilogue);
    return done;
}

static struct caper_blas_outcome describe_matrices(struct caper_plan *plan, const struct caper_product *p) {
    TRY(cublasLtMatrixLayoutCreate, &plan->a, p->in, p->trans_b ? p->k : p->n, p->trans_b ? p->n : p->k, p->ldb);
    TRY(cublasLtMatrixLayoutCreate, &plan->b, p->in, p->trans_a ? p->m : p->k, p->trans_a ? p->k : p->m, p->lda);
    TRY(cublasLtMatrixLayoutCreate, &plan->c, p->out, p->n, p->m, p->ldc);
    return done;
}

static struct caper_blas_outcome describe_preference(struct caper_plan *plan, const struct caper_product *p, uint64_t workspace) {
    const uint32_t none = 0; // no sums split along k, whose parts would be added in another order
    const uint32_t align[4] = {p->align_b, p->align_a, p->align_c, p->align_c};
    TRY(cublasLtMatmulPreferenceCreate, &plan->preference);
    TRY(cublasLtMatmulPreferenceSetAttribute, plan->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    TRY(cublasLtMatmulPreferenceSetAttribute, plan->preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &none, sizeof none);
    for (int i = 0; i < 4; i++)
        TRY(cublasLtMatmulPreferenceSetAttribute, plan->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i, &align[i], sizeof align[i]);
    return done;
}

struct caper_blas_outcome caper_plan_describe(struct caper_plan *plan, const struct caper_product *p, uint64_t workspace) {
    struct caper_blas_outcome o = describe_product(plan, p);
    if (!o.call) o = describe_matrices(plan, p);
    if (!o.call) o = describe_preference(plan, p, workspace);
    return o;
}

struct caper_blas_outcome caper_plan_choose(struct caper_plan *plan, CUcontext context, cublasLtHandle_t handle) {
    cublasLtMatmulHeuristicResult_t best = {0};
    int found = 0;
    cuCtxSetCurrent(context);
    TRY(cublasLtMatmulAlgoGetHeuristic, handle, plan->desc, plan->a, plan->b, plan->c, plan->c, plan->preference, 1, &best, &found);
    if (!found || best.state) return (struct caper_blas_outcome){"cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_NOT_SUPPORTED};
    plan->algo = best.algo;
    return done;
}

struct caper_blas_outcome caper_plan_run(const struct caper_plan *plan, CUcontext context, cublasLtHandle_t handle, CUstream stream,
                                         CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, CUdeviceptr bias, float beta, CUdeviceptr workspace,
                                         size_t workspace_size) {
    const float alpha = 1;
    void *const vector = (void *)bias;
    cuCtxSetCurrent(context);
    if (bias) TRY(cublasLtMatmulDescSetAttribute, plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &vector, sizeof vector);
    TRY(cublasLtMatmul, handle, plan->desc, &alpha, (const void *)b, plan->a, (const void *)a, plan->b, &beta, (const void *)c, plan->c,
        (void *)c, plan->c, &plan->algo, (void *)workspace, workspace_size, stream);
    return done;
}

void caper_plan_destroy(struct caper_plan *p) {
    if (p->preference) caper_cublaslt.cublasLtMatmulPreferenceDestroy(p->preference);
    if (p->a) caper_cublaslt.cublasLtMatrixLayoutDestroy(p->a);
    if (p->b) caper_cublaslt.cublasLtMatrixLayoutDestroy(p->b);
    if (p->c) caper_cublaslt.cublasLtMatrixLayoutDestroy(p->c);
    if (p->desc) caper_cublaslt.cublasLtMatmulDescDestroy(p->desc);
}
