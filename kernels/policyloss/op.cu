// The clipped policy loss in float32 (formulas: spec.go).
#include "dialect.cuh"

// A token of op.go, 16 bytes.
struct Token {
    float old, reference, advantage, weight;
};

// A token's loss, before its weight, and its slope by the log-prob.
DEVICE float term(const Token& k, float log_prob, float low, float high, float dual, float kl, float* slope) {
    const float apart = 20;
    float loss = 0;
    *slope = 0;
    if (k.advantage != 0) {
        const float a = k.advantage, ratio = expf(fminf(fmaxf(log_prob - k.old, -apart), apart));
        loss = *slope = -ratio * a;
        const float clipped = -fminf(fmaxf(ratio, 1 - low), 1 + high) * a, bound = -dual * a;
        if (clipped > loss) loss = clipped, *slope = 0;
        if (dual > 0 && a < 0 && loss > bound) loss = bound, *slope = 0;
    }
    if (kl != 0) {
        const float q = fminf(fmaxf(k.reference - log_prob, -apart), apart), e = expm1f(q);
        loss += kl * (e - q);
        *slope -= kl * e;
    }
    return loss;
}

// loss [1] of the tokens [count], by one block.
extern "C" __global__ void __launch_bounds__(256)
policyloss_forward(const float* log_probs, i64 stride, const Token* tokens, int count, float* loss, float low, float high, float dual, float kl) {
    SHARED(float, scratch, 32);
    float sum[1] = {0}, slope;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const Token k = tokens[i];
        if (k.weight != 0) sum[0] += k.weight * term(k, log_probs[i * stride], low, high, dual, kl, &slope);
    }
    block_sum(sum, scratch);
    if (threadIdx.x == 0) *loss = sum[0];
}

// dlog_probs [count] += dloss times the loss's slopes, a thread a token.
extern "C" __global__ void __launch_bounds__(128)
policyloss_backward(const float* log_probs, i64 stride, const Token* tokens, int count, const float* dloss, float* dlog_probs,
                    i64 dlog_probs_stride, float low, float high, float dual, float kl) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const Token k = tokens[i];
    if (k.weight == 0) return;
    float slope;
    term(k, log_probs[i * stride], low, high, dual, kl, &slope);
    dlog_probs[i * dlog_probs_stride] += *dloss * k.weight * slope;
}
