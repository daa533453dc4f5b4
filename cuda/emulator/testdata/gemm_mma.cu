// C [M, N] = A [M, K] B [N, K]^T in bf16: tiles of 64 x 64 by four warps, three stages of
// cp.async, ldmatrix and mma. K is a multiple of 32; M and N are any.
#include "dialect.cuh"

static constexpr int TILE = 64, DEPTH = 32, STAGES = 3;
static constexpr int PITCH = DEPTH + 8; // keeps the eight rows of an ldmatrix in different banks

// Starts copying rows row0.. of a [rows, K] matrix at columns k0.. to a [TILE, PITCH] tile.
DEVICE void load_tile(bf16* tile, const bf16* x, int row0, int rows, int k0, int K) {
    for (int c = threadIdx.x; c < TILE * DEPTH / 8; c += 128) {
        const int r = c / (DEPTH / 8), k = c % (DEPTH / 8) * 8;
        const bool inside = row0 + r < rows;
        cp_async16(tile + r * PITCH + k, x + (inside ? (i64)(row0 + r) * K + k0 + k : 0), inside ? 16 : 0);
    }
}

extern "C" __global__ void __launch_bounds__(128) gemm_mma(const bf16* __restrict__ A, const bf16* __restrict__ B, bf16* __restrict__ C, int M, int N, int K) {
    DYN_SHARED(bf16, shared);
    bf16* const a_tiles = shared;
    bf16* const b_tiles = shared + STAGES * TILE * PITCH;
    const int m0 = blockIdx.y * TILE, n0 = blockIdx.x * TILE, steps = K / DEPTH;
    const int lane = lane_id(), wm = warp_id() / 2 * 32, wn = warp_id() % 2 * 32;

    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) {
            load_tile(a_tiles + s * TILE * PITCH, A, m0, M, s * DEPTH, K);
            load_tile(b_tiles + s * TILE * PITCH, B, n0, N, s * DEPTH, K);
        }
        cp_async_commit();
    }
    float acc[2][4][4] = {};
    for (int step = 0; step < steps; step++) {
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        if (const int next = step + STAGES - 1; next < steps) {
            load_tile(a_tiles + next % STAGES * TILE * PITCH, A, m0, M, next * DEPTH, K);
            load_tile(b_tiles + next % STAGES * TILE * PITCH, B, n0, N, next * DEPTH, K);
        }
        cp_async_commit();
        const bf16* a_tile = a_tiles + step % STAGES * TILE * PITCH;
        const bf16* b_tile = b_tiles + step % STAGES * TILE * PITCH;
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            u32 a[2][4], b[2][4];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                ldmatrix_x4(a[i], a_tile + (wm + i * 16 + lane % 16) * PITCH + k + lane / 16 * 8);
                ldmatrix_x4(b[i], b_tile + (wn + i * 16 + lane / 16 * 8 + lane % 8) * PITCH + k + lane / 8 % 2 * 8);
            }
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) mma_m16n8k16(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int row = m0 + wm + i * 16 + lane / 4 + e / 2 * 8, column = n0 + wn + j * 8 + lane % 4 * 2 + e % 2;
                if (row < M && column < N) C[(i64)row * N + column] = to_bf16(acc[i][j][e]);
            }
}
