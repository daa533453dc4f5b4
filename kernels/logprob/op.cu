// Between the products of the log-probabilities (formulas: spec.go): pairs are taken in blocks
// and the vocabulary in chunks; cuBLASLt forms a chunk of logits, the softmax's maximum and
// sum run along from chunk to chunk, and the backward pass turns logits into their gradients
// for the two products that follow. A block of threads has a pair; a thread four words at a
// time. All sums have a fixed order.
#include "dialect.cuh"

// x [pairs, cols] = rows of hidden, zeros where a pair's dy is 0: a row that nobody asks a
// gradient of may hold anything. dy may be null. Grid: pairs; block: any.
extern "C" __global__ void __launch_bounds__(1024)
logprob_gather(const bf16* __restrict__ hidden, const int* __restrict__ rows, const float* __restrict__ dy, bf16* x, int cols, i64 hidden_stride,
               i64 dy_stride, i64 x_stride) {
    const i64 pair = blockIdx.x, row = rows[pair];
    const bool used = !dy || dy[pair * dy_stride] != 0;
    for (int c = threadIdx.x * 8; c < cols; c += blockDim.x * 8) {
        float v[8] = {};
        if (used) load8_bf16(v, hidden + row * hidden_stride + c, cols - c);
        store8_bf16(x + pair * x_stride + c, v, cols - c);
    }
}

DEVICE float minus_infinity() { return __uint_as_float(0xff800000); }

// The maximum `top` of logits and the sum of exp(logit - top), together with another pair's.
DEVICE void join(float& top, float& sum, float other_top, float other_sum) {
    const float t = fmaxf(top, other_top);
    if (t == minus_infinity()) return;
    sum = sum * expf(top - t) + other_sum * expf(other_top - t);
    top = t;
}

// Takes a chunk of logits [pairs, words], of words `first` and on, into running [3, pairs]: the
// maximum so far, the sum of exponentials below it, the target's logit. The first chunk begins
// it; the one that reaches the vocabulary's end writes lse, the logarithm of the sum of all
// exponentials, and y, the target's logit less that. Grid: pairs; block: whole warps.
extern "C" __global__ void __launch_bounds__(1024)
logprob_fold(const float* __restrict__ logits, const int* __restrict__ targets, float* running, float* y, float* lse, int words, int first, int vocabulary,
             i64 stride, i64 y_stride, i64 lse_stride) {
    SHARED(float, tops, 32);
    SHARED(float, sums, 32);
    const i64 pair = blockIdx.x, pairs = gridDim.x;
    const float* z = logits + pair * stride;
    float top = minus_infinity(), sum = 0;
    for (int c = threadIdx.x * 4; c < words; c += blockDim.x * 4) {
        float v[4];
        load_f32(v, z + c, words - c);
        float t = top;
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (c + i < words) t = fmaxf(t, v[i]);
        sum *= expf(top - t);
        top = t;
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (c + i < words) sum += expf(v[i] - top);
    }
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
        const float other_top = __shfl_xor_sync(ALL_LANES, top, o), other_sum = __shfl_xor_sync(ALL_LANES, sum, o);
        join(top, sum, other_top, other_sum);
    }
    if (lane_id() == 0) tops[warp_id()] = top, sums[warp_id()] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 1; w < blockDim.x / 32; w++) join(top, sum, tops[w], sums[w]);
    if (first > 0) {
        float before = running[pair], total = running[pairs + pair];
        join(before, total, top, sum);
        top = before, sum = total;
    }
    const int target = targets[pair] - first;
    float logit = first > 0 ? running[2 * pairs + pair] : 0;
    if (target >= 0 && target < words) logit = z[target];
    running[pair] = top, running[pairs + pair] = sum, running[2 * pairs + pair] = logit;
    if (first + words < vocabulary) return;
    const float l = top + logf(sum);
    lse[pair * lse_stride] = l;
    y[pair * y_stride] = logit - l;
}

// dz [pairs, words] = dy ([word = target] - exp(logit - lse)), zeros where dy is 0, for words
// `first` and on. Grid: pairs, words / (4 threads) rounded up; block: any.
extern "C" __global__ void __launch_bounds__(1024)
logprob_gradient(const float* __restrict__ logits, const int* __restrict__ targets, const float* __restrict__ dy, const float* __restrict__ lse, bf16* dz,
                 int words, int first, i64 stride, i64 dy_stride, i64 lse_stride, i64 dz_stride) {
    const i64 pair = blockIdx.x;
    const int c = (blockIdx.y * blockDim.x + threadIdx.x) * 4, target = targets[pair] - first;
    if (c >= words) return;
    const float d = dy[pair * dy_stride], l = lse[pair * lse_stride];
    float v[4] = {};
    if (d != 0) {
        load_f32(v, logits + pair * stride + c, words - c);
#pragma unroll
        for (int i = 0; i < 4; i++) v[i] = d * ((c + i == target ? 1 : 0) - expf(v[i] - l));
    }
    store4_bf16(dz + pair * dz_stride + c, v, words - c);
}

// dhidden += dx [pairs, cols], to row rows[pair] of each pair, for pairs order[starts[b]] to
// order[starts[b + 1] - 1] in block b, which are all of one row. Grid: rows; block: any.
extern "C" __global__ void __launch_bounds__(1024)
logprob_scatter(const float* __restrict__ dx, const int* __restrict__ order, const int* __restrict__ starts, const int* __restrict__ rows, bf16* dhidden,
                int cols, i64 dx_stride, i64 dhidden_stride) {
    const int start = starts[blockIdx.x], end = starts[blockIdx.x + 1];
    bf16* to = dhidden + rows[order[start]] * dhidden_stride;
    for (int c = threadIdx.x * 8; c < cols; c += blockDim.x * 8) {
        float sum[8], v[8];
        load8_bf16(sum, to + c, cols - c);
        for (int i = start; i < end; i++) {
            load_f32(v, dx + order[i] * dx_stride + c, cols - c);
#pragma unroll
            for (int e = 0; e < 8; e++) sum[e] += v[e];
        }
        store8_bf16(to + c, sum, cols - c);
    }
}
