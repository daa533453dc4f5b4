// The gated activation on bf16 rows (formulas: spec.go). A thread has eight columns of a row:
// blocks are (row, run of columns).
#include "dialect.cuh"

DEVICE int first_column() { return (blockIdx.y * blockDim.x + threadIdx.x) * 8; }

// y = silu(gate) up.
extern "C" __global__ void __launch_bounds__(256)
swiglu_forward(const bf16* gate, const bf16* up, bf16* y, int cols, i64 gate_stride, i64 up_stride, i64 y_stride) {
    const i64 row = blockIdx.x;
    const int c = first_column(), count = cols - c;
    if (count <= 0) return;
    const uint4 gates = load8_packed(gate + row * gate_stride + c, count), ups = load8_packed(up + row * up_stride + c, count);
    float g[8], u[8];
    unpack8(g, gates);
    unpack8(u, ups);
#pragma unroll
    for (int i = 0; i < 8; i++) u[i] *= g[i] * sigmoid(g[i]);
    store8_bf16(y + row * y_stride + c, u, count);
}

DEVICE void give(const float (&d)[8], bf16* to, int count, int accumulate) {
    float sum[8] = {};
    if (accumulate) load8_bf16(sum, to, count);
#pragma unroll
    for (int i = 0; i < 8; i++) sum[i] += d[i];
    store8_bf16(to, sum, count);
}

// dgate = dy up s (1 + gate (1 - s)) and dup = dy gate s with s = sigmoid(gate); either may be
// null. They are stored, or added to what is there.
extern "C" __global__ void __launch_bounds__(256)
swiglu_backward(const bf16* gate, const bf16* up, const bf16* dy, bf16* dgate, bf16* dup, int cols,
                i64 gate_stride, i64 up_stride, i64 dy_stride, i64 dgate_stride, i64 dup_stride, int accumulate_gate, int accumulate_up) {
    const i64 row = blockIdx.x;
    const int c = first_column(), count = cols - c;
    if (count <= 0) return;
    const uint4 gates = load8_packed(gate + row * gate_stride + c, count), ups = load8_packed(up + row * up_stride + c, count);
    const uint4 dys = load8_packed(dy + row * dy_stride + c, count);
    float g[8], u[8], d[8];
    unpack8(g, gates);
    unpack8(u, ups);
    unpack8(d, dys);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float s = sigmoid(g[i]), slope = d[i] * u[i] * s * (1 + g[i] * (1 - s));
        u[i] = d[i] * g[i] * s;
        g[i] = slope;
    }
    if (dgate) give(g, dgate + row * dgate_stride + c, count, accumulate_gate);
    if (dup) give(u, dup + row * dup_stride + c, count, accumulate_up);
}
