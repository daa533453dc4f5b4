// Unit length of heads in bf16 rows (formulas: spec.go). A lane has eight columns of a head, a
// head a group of `width` lanes: a power of two from dim / 8 up to 32.
#include "dialect.cuh"

// Where a thread works: `count` of its columns are there, 0 where its head is not.
struct Place {
    i64 row;
    int column, count;
};

DEVICE Place place(int rows, int heads, int dim, int width) {
    const int head = (blockIdx.x * blockDim.x + threadIdx.x) / width, c = threadIdx.x % width * 8;
    return {head / heads, head % heads * dim + c, head < rows * heads ? dim - c : 0};
}

// y = n x with n = (sum x^2 + eps)^-1/2.
extern "C" __global__ void __launch_bounds__(256)
l2norm_forward(const bf16* x, bf16* y, int rows, int heads, int dim, int width, i64 x_stride, i64 y_stride, float eps) {
    const Place at = place(rows, heads, dim, width);
    float v[8], squares = 0;
    load8_bf16(v, x + at.row * x_stride + at.column, at.count);
#pragma unroll
    for (int i = 0; i < 8; i++) squares += v[i] * v[i];
    const float n = rsqrtf(group_sum(squares, width) + eps);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] *= n;
    store8_bf16(y + at.row * y_stride + at.column, v, at.count);
}

// dx = n (dy - n^2 x <x, dy>), stored, or added to what is there.
extern "C" __global__ void __launch_bounds__(256)
l2norm_backward(const bf16* x, const bf16* dy, bf16* dx, int rows, int heads, int dim, int width,
                i64 x_stride, i64 dy_stride, i64 dx_stride, float eps, int accumulate) {
    const Place at = place(rows, heads, dim, width);
    bf16* to = dx + at.row * dx_stride + at.column;
    const uint4 xs = load8_packed(x + at.row * x_stride + at.column, at.count);
    const uint4 dys = load8_packed(dy + at.row * dy_stride + at.column, at.count);
    float v[8], d[8], sum[8] = {}, squares = 0, along = 0;
    if (accumulate) load8_bf16(sum, to, at.count);
    unpack8(v, xs);
    unpack8(d, dys);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        squares += v[i] * v[i];
        along += v[i] * d[i];
    }
    const float n = rsqrtf(group_sum(squares, width) + eps);
    along = group_sum(along, width) * n * n;
#pragma unroll
    for (int i = 0; i < 8; i++) sum[i] += n * (d[i] - along * v[i]);
    store8_bf16(to, sum, at.count);
}
