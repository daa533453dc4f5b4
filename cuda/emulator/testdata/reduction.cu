// The sum of a vector: warps by shuffles, blocks by shared memory, the grid by the block
// that finishes last, so that the order of additions is fixed.
#include "dialect.cuh"

// partial has an element for each block; count is 0 before and after.
extern "C" __global__ void __launch_bounds__(256) vector_sum(const float* __restrict__ x, float* partial, u32* count, float* sum, int n) {
    SHARED(float, warp, 8);
    SHARED(u32, last, 1);
    float s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) s += x[i];
    s = warp_sum(s);
    if (lane_id() == 0) warp[warp_id()] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; w++) s += warp[w];
        partial[blockIdx.x] = s;
        __threadfence();
        last[0] = atomicAdd(count, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last[0] || threadIdx.x != 0) return;
    __threadfence();
    s = 0;
    for (u32 b = 0; b < gridDim.x; b++) s += partial[b];
    *sum = s;
    *count = 0;
}
