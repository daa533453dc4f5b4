// The margin-weighted preference loss in float32 (formulas: spec.go). What is divided by is that
// of the whole step: weights is the sum of its pairs' weights, center the factor of the
// centring term over the number of its pairs.
#include "dialect.cuh"

// A pair of op.go, 16 bytes.
struct Pair {
    int chosen, rejected;
    float margin, weight;
};

DEVICE float softplus(float x) { return fmaxf(x, 0) + log1pf(expf(-fabsf(x))); }
DEVICE float logistic(float x) { return 1 / (1 + expf(-x)); }

// loss [1] of the scores of pairs [count], by one block.
extern "C" __global__ void __launch_bounds__(256)
marginloss_forward(const float* scores, i64 stride, const Pair* pairs, int count, float* loss, float offset, float center, float weights) {
    SHARED(float, scratch, 32);
    float sum[1] = {0};
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const Pair p = pairs[i];
        const float chosen = scores[p.chosen * stride], rejected = scores[p.rejected * stride], both = chosen + rejected;
        if (p.weight != 0) sum[0] += p.weight / weights * softplus(offset * p.margin - (chosen - rejected));
        if (center != 0) sum[0] += center * both * both;
    }
    block_sum(sum, scratch);
    if (threadIdx.x == 0) *loss = sum[0];
}

// dscores [rows] += dloss times the loss's slopes. A thread has a score and takes the pairs in
// their order.
extern "C" __global__ void __launch_bounds__(128)
marginloss_backward(const float* scores, i64 stride, const Pair* __restrict__ pairs, int count, const float* dloss, float* dscores, i64 dscores_stride,
                    int rows, float offset, float center, float weights) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int i = 0; i < count; i++) {
        const Pair p = pairs[i];
        if (p.chosen != row && p.rejected != row) continue;
        const float chosen = scores[p.chosen * stride], rejected = scores[p.rejected * stride];
        const float slope = p.weight != 0 ? p.weight / weights * logistic(offset * p.margin - (chosen - rejected)) : 0;
        const float pull = center != 0 ? 2 * center * (chosen + rejected) : 0;
        if (p.chosen == row) sum += pull - slope;
        if (p.rejected == row) sum += pull + slope;
    }
    dscores[row * dscores_stride] += *dloss * sum;
}
