// The factor of an adapter (formulas: spec.go); the products are cuBLASLt's.
#include "dialect.cuh"

// x *= factor. Blocks are (row, run of columns); a thread has eight columns.
extern "C" __global__ void __launch_bounds__(256) lowrank_scale(bf16* x, int cols, i64 stride, float factor) {
    const int c = (blockIdx.y * blockDim.x + threadIdx.x) * 8, count = cols - c;
    if (count <= 0) return;
    bf16* at = x + blockIdx.x * stride + c;
    float v[8];
    load8_bf16(v, at, count);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] *= factor;
    store8_bf16(at, v, count);
}
