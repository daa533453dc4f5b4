// Kernels that do nothing but wait for each other's threads, for the benchmarks.
#include "dialect.cuh"

extern "C" __global__ void __launch_bounds__(1024) nothing() {}

extern "C" __global__ void __launch_bounds__(1024) barriers(float* x, int n) {
    for (int i = 0; i < n; i++) __syncthreads();
    x[threadIdx.x] = n;
}

extern "C" __global__ void __launch_bounds__(1024) shuffles(float* x, int n) {
    float s = threadIdx.x;
    for (int i = 0; i < n; i++) s = __shfl_xor_sync(ALL_LANES, s, 1);
    x[threadIdx.x] = s;
}
