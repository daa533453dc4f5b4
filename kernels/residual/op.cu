// The residual connection on bf16 rows (formulas: spec.go). A thread has eight columns of a
// row: blocks are (row, run of columns).
#include "dialect.cuh"

DEVICE int first_column() { return (blockIdx.y * blockDim.x + threadIdx.x) * 8; }

// sum = x + y.
extern "C" __global__ void __launch_bounds__(256)
residual_forward(const bf16* x, const bf16* y, bf16* sum, int cols, i64 x_stride, i64 y_stride, i64 sum_stride) {
    const i64 row = blockIdx.x;
    const int c = first_column(), count = cols - c;
    if (count <= 0) return;
    const uint4 xs = load8_packed(x + row * x_stride + c, count), ys = load8_packed(y + row * y_stride + c, count);
    float s[8], v[8];
    unpack8(s, xs);
    unpack8(v, ys);
#pragma unroll
    for (int i = 0; i < 8; i++) s[i] += v[i];
    store8_bf16(sum + row * sum_stride + c, s, count);
}

DEVICE void give(const float (&d)[8], bf16* to, int count, int accumulate) {
    float sum[8] = {};
    if (accumulate) load8_bf16(sum, to, count);
#pragma unroll
    for (int i = 0; i < 8; i++) sum[i] += d[i];
    store8_bf16(to, sum, count);
}

// dx and dy, each of which may be null, become dsum, or it is added to them. They may be the
// same, when y is x: then it is added twice.
extern "C" __global__ void __launch_bounds__(256)
residual_backward(const bf16* dsum, bf16* dx, bf16* dy, int cols, i64 dsum_stride, i64 dx_stride, i64 dy_stride, int accumulate_x, int accumulate_y) {
    const i64 row = blockIdx.x;
    const int c = first_column(), count = cols - c;
    if (count <= 0) return;
    float d[8];
    load8_bf16(d, dsum + row * dsum_stride + c, count);
    if (dx) give(d, dx + row * dx_stride + c, count, accumulate_x);
    if (dy) give(d, dy + row * dy_stride + c, count, accumulate_y);
}
