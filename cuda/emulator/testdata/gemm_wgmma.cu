// C [M, N] = A [M, K] B [N, K]^T in bf16 on Hopper: one warpgroup issues the bulk copies
// of a ring of stages, two multiply, 64 rows each. Maps cut A into boxes of 128 x 64, B
// into 256 x 64, with a swizzle of 128 bytes. K is a multiple of 64, N of 2.
#include "dialect.cuh"

#if HAS_WGMMA
static constexpr int BM = 128, BN = 256, BK = 64, RING = 4;
static constexpr u32 A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2;

extern "C" __global__ void __launch_bounds__(384, 1) gemm_wgmma(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, bf16* __restrict__ C, int M, int N, int K) {
    DYN_SHARED(u8, shared);
    SHARED(Mbarrier, full, RING);
    SHARED(Mbarrier, empty, RING);
    u8* const a_tiles = shared;
    u8* const b_tiles = shared + RING * A_BYTES;
    const int group = threadIdx.x / 128, m0 = blockIdx.y * BM, n0 = blockIdx.x * BN, steps = K / BK;
    if (threadIdx.x == 0) {
        for (int s = 0; s < RING; s++) {
            mbarrier_init(&full[s], 1);
            mbarrier_init(&empty[s], 2);
        }
        mbarrier_fence_init();
    }
    __syncthreads();
    if (group == 0) {
        registers_release<40>();
        if (threadIdx.x == 0)
            for (int step = 0; step < steps; step++) {
                const int s = step % RING;
                mbarrier_wait(&empty[s], step / RING % 2 ^ 1);
                mbarrier_arrive_expect(&full[s], A_BYTES + B_BYTES);
                tma_load_2d(a_tiles + s * A_BYTES, &a_map, step * BK, m0, &full[s]);
                tma_load_2d(b_tiles + s * B_BYTES, &b_map, step * BK, n0, &full[s]);
            }
        return;
    }
    registers_acquire<232>();
    float acc[BN / 2];
#pragma unroll
    for (int i = 0; i < BN / 2; i++) acc[i] = 0;
    for (int step = 0; step < steps; step++) {
        const int s = step % RING;
        mbarrier_wait(&full[s], step / RING % 2);
        const u64 a = wgmma_tile(a_tiles + s * A_BYTES + (group - 1) * 64 * BK * 2), b = wgmma_tile(b_tiles + s * B_BYTES);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BK / 16; k++) wgmma<BN>(acc, a + k * 2, b + k * 2, true);
        wgmma_commit();
        wgmma_wait<0>();
        if (threadIdx.x % 128 == 0) mbarrier_arrive(&empty[s]);
    }
    const int lane = lane_id(), row = m0 + (group - 1) * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int j = 0; j < BN / 8; j++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int r = row + h * 8, c = n0 + j * 8 + lane % 4 * 2;
            if (r < M && c < N) store4(C + (i64)r * N + c, pack_bf16(acc[j * 4 + h * 2], acc[j * 4 + h * 2 + 1]));
        }
}
#endif
