// The gated RMSNorm on heads of bf16 rows (formulas: spec.go). A lane has eight columns of a
// head, a head a group of `width` lanes: a power of two from dim / 8 up to 32.
#include "dialect.cuh"

static constexpr int THREADS = 256;

// Where a thread works: `count` of its columns are there, 0 where its head is not. column
// counts in the row, from in the head.
struct Place {
    i64 row;
    int column, from, count;
};

DEVICE Place place(int head, int rows, int heads, int dim, int width) {
    const int from = threadIdx.x % width * 8;
    return {head / heads, head % heads * dim + from, from, head < rows * heads ? dim - from : 0};
}

// y = r x w silu(z) with r = (mean x^2 + eps)^-1/2.
extern "C" __global__ void __launch_bounds__(THREADS)
gatednorm_forward(const bf16* x, const bf16* z, const bf16* __restrict__ w, bf16* y, int rows, int heads, int dim, int width,
                  i64 x_stride, i64 z_stride, i64 y_stride, float eps) {
    const Place at = place((blockIdx.x * THREADS + threadIdx.x) / width, rows, heads, dim, width);
    const uint4 xs = load8_packed(x + at.row * x_stride + at.column, at.count), zs = load8_packed(z + at.row * z_stride + at.column, at.count);
    const uint4 ws = load8_packed(w + at.from, at.count);
    float v[8], gate[8], g[8], squares = 0;
    unpack8(v, xs);
    unpack8(gate, zs);
    unpack8(g, ws);
#pragma unroll
    for (int i = 0; i < 8; i++) squares += v[i] * v[i];
    const float inverse = rsqrtf(group_sum(squares, width) / dim + eps);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] *= inverse * g[i] * gate[i] * sigmoid(gate[i]);
    store8_bf16(y + at.row * y_stride + at.column, v, at.count);
}

DEVICE void give(const float (&d)[8], bf16* to, int count, int accumulate) {
    float sum[8] = {};
    if (accumulate) load8_bf16(sum, to, count);
#pragma unroll
    for (int i = 0; i < 8; i++) sum[i] += d[i];
    store8_bf16(to, sum, count);
}

// With n = r x and u = dy silu(z): dx = r (u w - n mean(u w n)) and dz = dy n w silu'(z), each
// stored, or added to what is there. Block b takes the heads b, b + blocks, ... by
// THREADS / width and leaves its part of the weight's gradient, sum of u n, in partial [blocks,
// dim]. dx, dz or partial may be null.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
gatednorm_backward(const bf16* x, const bf16* z, const bf16* __restrict__ w, const bf16* dy, bf16* dx, bf16* dz, float* partial,
                   int rows, int heads, int dim, int width, i64 x_stride, i64 z_stride, i64 dy_stride, i64 dx_stride, i64 dz_stride,
                   float eps, int accumulate_x, int accumulate_z) {
    SHARED(float, parts, THREADS * 8);
    const int groups = THREADS / width;
    const float share = 1.f / dim;
    float dw[8] = {};
    for (int first = blockIdx.x * groups; first < rows * heads; first += gridDim.x * groups) {
        const Place at = place(first + threadIdx.x / width, rows, heads, dim, width);
        const uint4 xs = load8_packed(x + at.row * x_stride + at.column, at.count), zs = load8_packed(z + at.row * z_stride + at.column, at.count);
        const uint4 dys = load8_packed(dy + at.row * dy_stride + at.column, at.count), ws = load8_packed(w + at.from, at.count);
        float v[8], gate[8], d[8], g[8], squares = 0, along = 0;
        unpack8(v, xs);
        unpack8(gate, zs);
        unpack8(d, dys);
        unpack8(g, ws);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            squares += v[i] * v[i];
            along += d[i] * gate[i] * sigmoid(gate[i]) * g[i] * v[i];
        }
        const float inverse = rsqrtf(group_sum(squares, width) * share + eps), mean = group_sum(along, width) * inverse * share;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float s = sigmoid(gate[i]), n = inverse * v[i], u = d[i] * gate[i] * s;
            dw[i] += u * n;
            v[i] = inverse * (u * g[i] - n * mean);
            d[i] *= n * g[i] * s * (1 + gate[i] * (1 - s));
        }
        if (dx) give(v, dx + at.row * dx_stride + at.column, at.count, accumulate_x);
        if (dz) give(d, dz + at.row * dz_stride + at.column, at.count, accumulate_z);
    }
    if (!partial) return;
    store_f32(parts + threadIdx.x * 8, dw, 8); // [groups, 8 width]
    __syncthreads();
    for (int c = threadIdx.x; c < dim; c += THREADS) {
        float sum = 0;
        for (int g = 0; g < groups; g++) sum += parts[g * 8 * width + c];
        partial[(i64)blockIdx.x * dim + c] = sum;
    }
}

// dw [dim] += the sum of partial [blocks, dim] over blocks. A block has 32 columns.
extern "C" __global__ void __launch_bounds__(256) gatednorm_weight_gradient(const float* partial, float* dw, int blocks, int dim) {
    SHARED(float, scratch, 256);
    const int c = blockIdx.x * 32 + lane_id();
    const float sum = column_sum(partial, blocks, dim, c, dim, scratch);
    if (warp_id() == 0 && c < dim) dw[c] += sum;
}
