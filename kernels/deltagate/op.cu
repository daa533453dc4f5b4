// The gates of the gated delta rule (formulas: spec.go): a and b are bf16; a_log, dt_bias, g,
// beta and their gradients are float32. A lane has a column, a warp a row: blocks are (rows,
// run of 32 columns).
#include "dialect.cuh"

static constexpr int WARPS = 8;

DEVICE float logistic(float x) { return 1 / (1 + expf(-x)); }
DEVICE float softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }

// g = -exp(a_log) softplus(a + dt_bias), beta = logistic(b). A block has WARPS rows.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
deltagate_forward(const bf16* a, const bf16* b, const float* a_log, const float* dt_bias, float* g, float* beta,
                  int rows, int heads, i64 a_stride, i64 b_stride, i64 g_stride, i64 beta_stride) {
    const i64 row = (i64)blockIdx.x * WARPS + warp_id();
    const int h = blockIdx.y * 32 + lane_id();
    if (row >= rows || h >= heads) return;
    g[row * g_stride + h] = -expf(a_log[h]) * softplus(to_f32(a[row * a_stride + h]) + dt_bias[h]);
    beta[row * beta_stride + h] = logistic(to_f32(b[row * b_stride + h]));
}

DEVICE void give(bf16* to, float d, int accumulate) { *to = to_bf16((accumulate ? to_f32(*to) : 0) + d); }

// da = -dg exp(a_log) logistic(a + dt_bias) and db = dbeta beta (1 - beta), each stored, or added
// to what is there; da, db, dg with what follows from it, or dbeta may be null. A block has
// block_rows rows; it leaves its parts of ddt_bias, sum of da, and of da_log, sum of dg g, in
// partial [2, blocks, heads].
extern "C" __global__ void __launch_bounds__(WARPS * 32)
deltagate_backward(const bf16* a, const bf16* b, const float* a_log, const float* dt_bias, const float* g, const float* dg, const float* dbeta,
                   bf16* da, bf16* db, float* partial, int rows, int heads, int block_rows, i64 a_stride, i64 b_stride, i64 g_stride,
                   i64 dg_stride, i64 dbeta_stride, i64 da_stride, i64 db_stride, int accumulate_a, int accumulate_b) {
    SHARED(float, bias_parts, WARPS * 32);
    SHARED(float, log_parts, WARPS * 32);
    const int h = blockIdx.y * 32 + lane_id(), first = blockIdx.x * block_rows, last = min(first + block_rows, rows);
    float bias_sum = 0, log_sum = 0;
    for (i64 row = first + warp_id(); row < last && h < heads; row += WARPS) {
        if (dg) {
            const float d = dg[row * dg_stride + h], slope = -d * expf(a_log[h]) * logistic(to_f32(a[row * a_stride + h]) + dt_bias[h]);
            bias_sum += slope;
            log_sum += d * g[row * g_stride + h];
            if (da) give(da + row * da_stride + h, slope, accumulate_a);
        }
        if (dbeta && db) {
            const float x = to_f32(b[row * b_stride + h]); // 1 - beta would lose digits where beta is near 1
            give(db + row * db_stride + h, dbeta[row * dbeta_stride + h] * logistic(x) * logistic(-x), accumulate_b);
        }
    }
    bias_parts[threadIdx.x] = bias_sum;
    log_parts[threadIdx.x] = log_sum;
    __syncthreads();
    if (!partial || warp_id() > 1 || h >= heads) return;
    const float* parts = warp_id() == 0 ? bias_parts : log_parts;
    float sum = 0;
    for (int w = 0; w < WARPS; w++) sum += parts[w * 32 + lane_id()];
    partial[((i64)warp_id() * gridDim.x + blockIdx.x) * heads + h] = sum;
}

// ddt_bias and da_log [heads], either of which may be null, += their parts [2, blocks, heads].
// Blocks are (run of 32 heads, 0 or 1).
extern "C" __global__ void __launch_bounds__(256)
deltagate_weight_gradient(const float* partial, float* ddt_bias, float* da_log, int blocks, int heads) {
    SHARED(float, scratch, 256);
    const int h = blockIdx.x * 32 + lane_id();
    float* to = blockIdx.y == 0 ? ddt_bias : da_log;
    const float sum = column_sum(partial + (i64)blockIdx.y * blocks * heads, blocks, heads, h, heads, scratch);
    if (to && warp_id() == 0 && h < heads) to[h] += sum;
}
