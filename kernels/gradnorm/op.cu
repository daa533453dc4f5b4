// The sum of squares of gradients, in float64 and in a fixed order: a thread's elements, its
// warp's lanes, its block's warps, the blocks.
#include "dialect.cuh"

DEVICE double warp_total(double v) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(ALL_LANES, v, o);
    return v;
}

// The total over a block, in its first warp. scratch is shared memory for 32.
DEVICE double block_total(double v, double* scratch) {
    v = warp_total(v);
    if (lane_id() == 0) scratch[warp_id()] = v;
    __syncthreads();
    return warp_id() == 0 ? warp_total(lane_id() < blockDim.x / 32 ? scratch[lane_id()] : 0) : 0;
}

// partial [blocks] = each block's part of the sum of g's squares. Block b takes elements
// 2,048 b to 2,048 b + 2,047 and every 2,048 blocks on.
extern "C" __global__ void __launch_bounds__(256) gradnorm_squares(const float* g, i64 n, double* partial) {
    SHARED(double, scratch, 32);
    double sum = 0;
#pragma unroll 2
    for (i64 i = ((i64)blockIdx.x * 256 + threadIdx.x) * 8; i < n; i += (i64)gridDim.x * 2048) {
        float v[8];
        load_f32(v, g + i, (int)min(n - i, (i64)8));
#pragma unroll
        for (int j = 0; j < 8; j++) sum += (double)v[j] * v[j];
    }
    sum = block_total(sum, scratch);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// norm [1] = the root of the sum of partial [count], by one block.
extern "C" __global__ void __launch_bounds__(1024) gradnorm_norm(const double* partial, int count, double* norm) {
    SHARED(double, scratch, 32);
    double sum = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) sum += partial[i];
    sum = block_total(sum, scratch);
    if (threadIdx.x == 0) *norm = sqrt(sum);
}
