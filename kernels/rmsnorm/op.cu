// RMSNorm of bf16 rows, forward and backward (formulas: spec.go). One block takes one row at a
// time; a thread owns the same groups of eight columns in every pass and row, so that what it
// reads again is still in the cache, and what it sums in shared memory is its own.
//
// Rows begin at multiples of 16 bytes: strides are multiples of 8 elements. The block is a
// row of whole warps, about an eighth of the columns. Every sum has a fixed order.
#include "dialect.cuh"

// Qwen3 stores the gain itself and rounds the normalised row to bf16 before it is applied;
// Qwen3.5 stores the gain's distance from 1 (offset 1) and rounds once, at the end.
DEVICE float normalised(float x, float inverse, float offset) {
    const float n = x * inverse;
    return offset == 0 ? to_f32(to_bf16(n)) : n;
}

// y = normalised(x) (offset + w). With a residual, x is replaced by x + residual, which is
// written to sum in bf16 and normalised as it was rounded. sum may be x.
extern "C" __global__ void __launch_bounds__(1024)
rmsnorm_forward(const bf16* x, const bf16* residual, const bf16* __restrict__ w, bf16* sum, bf16* y, int cols,
                i64 x_stride, i64 residual_stride, i64 sum_stride, i64 y_stride, float eps, float offset) {
    SHARED(float, scratch, 32);
    const i64 row = blockIdx.x;
    const bf16* normed = x + row * x_stride;
    float squares[1] = {0};
    for (int c = threadIdx.x * 8; c < cols; c += blockDim.x * 8) {
        float v[8];
        load8_bf16(v, x + row * x_stride + c, cols - c);
        if (residual) {
            float r[8];
            load8_bf16(r, residual + row * residual_stride + c, cols - c);
#pragma unroll
            for (int i = 0; i < 8; i++) v[i] = to_f32(to_bf16(v[i] + r[i]));
            store8_bf16(sum + row * sum_stride + c, v, cols - c);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) squares[0] += v[i] * v[i];
    }
    if (residual) normed = sum + row * sum_stride;
    block_sum(squares, scratch);
    const float inverse = 1 / sqrtf(squares[0] / cols + eps);
    for (int c = threadIdx.x * 8; c < cols; c += blockDim.x * 8) {
        float v[8], g[8];
        load8_bf16(v, normed + c, cols - c);
        load8_bf16(g, w + c, cols - c);
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = normalised(v[i], inverse, offset) * (offset + g[i]);
        store8_bf16(y + row * y_stride + c, v, cols - c);
    }
}

// dx = r (dy g - n mean(dy g n)), and added to it, where there is one, what else flows into
// x: added [rows, cols] may be dx itself. x is what was normalised. Block b takes rows b,
// b + blocks, ... and leaves its part of the weight's gradient, sum of dy n, in partial
// [blocks, cols]; dynamic shared memory holds cols floats. dx or partial may be null.
extern "C" __global__ void __launch_bounds__(1024)
rmsnorm_backward(const bf16* __restrict__ x, const bf16* __restrict__ w, const bf16* __restrict__ dy, const bf16* added, bf16* dx, float* partial,
                 int rows, int cols, i64 x_stride, i64 dy_stride, i64 added_stride, i64 dx_stride, float eps, float offset) {
    SHARED(float, scratch, 64);
    DYN_SHARED(float, dw);
    if (partial)
        for (int c = threadIdx.x * 8; c < cols; c += blockDim.x * 8)
            for (int i = 0; i < min(8, cols - c); i++) dw[c + i] = 0;
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
        float sums[2] = {0, 0}; // of x^2 and of dy g x
        for (int c = threadIdx.x * 8; c < cols; c += blockDim.x * 8) {
            float v[8], d[8], g[8];
            load8_bf16(v, x + row * x_stride + c, cols - c);
            load8_bf16(d, dy + row * dy_stride + c, cols - c);
            load8_bf16(g, w + c, cols - c);
#pragma unroll
            for (int i = 0; i < 8; i++) {
                sums[0] += v[i] * v[i];
                sums[1] += d[i] * (offset + g[i]) * v[i];
            }
        }
        block_sum(sums, scratch);
        const float inverse = 1 / sqrtf(sums[0] / cols + eps), mean = sums[1] * inverse / cols;
        for (int c = threadIdx.x * 8; c < cols; c += blockDim.x * 8) {
            float v[8], d[8], g[8], a[8] = {};
            load8_bf16(v, x + row * x_stride + c, cols - c);
            load8_bf16(d, dy + row * dy_stride + c, cols - c);
            if (partial)
                for (int i = 0; i < min(8, cols - c); i++) dw[c + i] += d[i] * normalised(v[i], inverse, offset);
            if (!dx) continue;
            load8_bf16(g, w + c, cols - c);
            if (added) load8_bf16(a, added + row * added_stride + c, cols - c);
#pragma unroll
            for (int i = 0; i < 8; i++) a[i] += inverse * (d[i] * (offset + g[i]) - v[i] * inverse * mean);
            store8_bf16(dx + row * dx_stride + c, a, cols - c);
        }
    }
    if (partial)
        for (int c = threadIdx.x * 8; c < cols; c += blockDim.x * 8)
            for (int i = 0; i < min(8, cols - c); i++) partial[(i64)blockIdx.x * cols + c + i] = dw[c + i];
}

// dw [cols] += the sum of partial [blocks, cols] over blocks, in their order.
extern "C" __global__ void __launch_bounds__(256) rmsnorm_weight_gradient(const float* __restrict__ partial, float* dw, int blocks, int cols) {
    const int c = blockIdx.x * 256 + threadIdx.x;
    if (c >= cols) return;
    float s = 0;
    for (int b = 0; b < blocks; b++) s += partial[(i64)b * cols + c];
    dw[c] += s;
}
