// One kernel for each primitive: inputs from memory, results to memory, nothing between.
#include "dialect.cuh"

extern "C" __global__ void __launch_bounds__(32) convert(const float* x, u16* one, u32* pair, float* back, int n) {
    for (int i = threadIdx.x; i < n; i += 32) {
        const bf16 b = to_bf16(x[i]);
        one[i] = b.bits;
        pair[i] = pack_bf16(x[i], x[n - 1 - i]);
        back[3 * i] = to_f32(b);
        back[3 * i + 1] = low_f32(pair[i]);
        back[3 * i + 2] = high_f32(pair[i]);
    }
}

extern "C" __global__ void __launch_bounds__(32) approximate(const float* x, float* y, int n) {
    for (int i = threadIdx.x; i < n; i += 32) {
        y[4 * i] = fast_exp2(x[i]);
        y[4 * i + 1] = fast_log2(x[i]);
        y[4 * i + 2] = fast_rsqrt(x[i]);
        y[4 * i + 3] = fast_reciprocal(x[i]);
    }
}

extern "C" __global__ void __launch_bounds__(32) shuffles(u32* out, int operand) {
    const u32 lane = threadIdx.x;
    u32* o = out + lane * 8;
    o[0] = __shfl_sync(ALL_LANES, lane, operand);
    o[1] = __shfl_up_sync(ALL_LANES, lane, operand);
    o[2] = __shfl_down_sync(ALL_LANES, lane, operand);
    o[3] = __shfl_xor_sync(ALL_LANES, lane, operand);
    o[4] = __shfl_up_sync(ALL_LANES, lane, operand, 8);
    o[5] = __shfl_down_sync(ALL_LANES, lane, operand, 8);
    o[6] = __shfl_sync(ALL_LANES, lane, operand, 8);
    o[7] = __ballot_sync(ALL_LANES, lane % 3 == (u32)operand % 3);
}

extern "C" __global__ void __launch_bounds__(64) votes(int* out) {
    const int a = __syncthreads_count(threadIdx.x % 3 == 0);
    const int b = __syncthreads_and(threadIdx.x < 64), c = __syncthreads_and(threadIdx.x < 63);
    const int d = __syncthreads_or(threadIdx.x == 5), e = __syncthreads_or(0);
    int* o = out + threadIdx.x * 5;
    o[0] = a, o[1] = b, o[2] = c, o[3] = d, o[4] = e;
}

extern "C" __global__ void __launch_bounds__(128) packed(const u32* x, u32* y, int n) {
    for (int i = threadIdx.x * 8; i < n; i += 128 * 8) {
        store16(y + i, load16(x + i));
        store8(y + i + 4, load8(x + i + 4));
        store4(y + i + 6, load4(x + i + 6));
        y[i + 7] = load16_once(x + i + 4).w;
    }
}

// x is [32, 8] halves: four matrices of eight rows.
extern "C" __global__ void __launch_bounds__(32) ldmatrices(const u16* x, u32* out) {
    SHARED(u16, tile, 256);
    store16(tile + threadIdx.x * 8, load16(x + threadIdx.x * 8));
    __syncthreads();
    u32 a[4], b[4], c[2], d[2];
    const u16* row = tile + threadIdx.x * 8;
    ldmatrix_x4(a, row);
    ldmatrix_x4_trans(b, row);
    ldmatrix_x2(c, row);
    ldmatrix_x2_trans(d, row);
    u32* o = out + threadIdx.x * 12;
    for (int i = 0; i < 4; i++) o[i] = a[i], o[i + 4] = b[i];
    for (int i = 0; i < 2; i++) o[i + 8] = c[i], o[i + 10] = d[i];
}

extern "C" __global__ void __launch_bounds__(32) mma_fragments(const u32* a, const u32* b, float* d) {
    const int l = threadIdx.x;
    const u32 fa[4] = {a[4 * l], a[4 * l + 1], a[4 * l + 2], a[4 * l + 3]};
    float fd[4];
    for (int i = 0; i < 4; i++) fd[i] = d[4 * l + i];
    mma_m16n8k16(fd, fa, b[2 * l], b[2 * l + 1]);
    for (int i = 0; i < 4; i++) d[4 * l + i] = fd[i];
}

extern "C" __global__ void __launch_bounds__(32) zero_filled_copies(const u8* x, u8* y) {
    DYN_SHARED(u8, s);
    cp_async16(s + threadIdx.x * 16, x + threadIdx.x * 16, threadIdx.x % 17);
    cp_async_commit();
    cp_async_wait<0>();
    store16(y + threadIdx.x * 16, load16(s + threadIdx.x * 16));
}

// Copies the first `count` of N elements between addresses of any alignment.
extern "C" __global__ void __launch_bounds__(32) ragged(const bf16* x, bf16* y, const float* f, float* g, int count) {
    float v[8], w[4];
    load8_bf16(v, x, count);
    store8_bf16(y, v, count);
    unpack4(w, load4_packed(x + 8, count));
    store4_bf16(y + 8, w, count);
    load_f32(v, f, count);
    store_f32(g, v, count);
    load_f32(w, f + 8, count);
    store_f32(g + 8, w, count);
}

// out [128]: sums over groups of lanes; [128, 160): sums of the columns of x [rows, 40] from column 16 on; then sigmoids.
extern "C" __global__ void __launch_bounds__(256) sums(const float* x, int rows, float* out) {
    SHARED(float, scratch, 256);
    for (int i = 0, width = 1; i < 3; i++, width *= 4) {
        const float s = group_sum(x[lane_id()], width);
        if (warp_id() == 0) out[32 * i + lane_id()] = s;
    }
    const float s = column_sum(x, rows, 40, 16 + lane_id(), 40, scratch);
    if (warp_id() == 0) out[128 + lane_id()] = s;
    if (warp_id() == 1) out[160 + lane_id()] = sigmoid(x[lane_id()]);
}

#if HAS_TMA
// A box in, its bytes of shared memory out; bytes is a multiple of 16.
extern "C" __global__ void __launch_bounds__(32) load_box(const __grid_constant__ TensorMap map, u8* out, int rank, int x, int y, int z, int bytes) {
    DYN_SHARED(u8, s);
    SHARED(Mbarrier, b, 1);
    if (threadIdx.x == 0) {
        mbarrier_init(b, 1);
        mbarrier_fence_init();
        mbarrier_arrive_expect(b, bytes);
        if (rank == 2) tma_load_2d(s, &map, x, y, b);
        if (rank == 3) tma_load_3d(s, &map, x, y, z, b);
        if (rank == 4) tma_load_4d(s, &map, x, y, z, 0, b);
    }
    __syncthreads();
    mbarrier_wait(b, 0);
    for (int i = threadIdx.x * 16; i < bytes; i += 512) store16(out + i, load16(s + i));
}

extern "C" __global__ void __launch_bounds__(32) store_box(const __grid_constant__ TensorMap map, const u8* in, int rank, int x, int y, int z, int bytes) {
    DYN_SHARED(u8, s);
    for (int i = threadIdx.x * 16; i < bytes; i += 512) store16(s + i, load16(in + i));
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (rank == 2) tma_store_2d(&map, x, y, s);
    if (rank == 3) tma_store_3d(&map, x, y, z, s);
    tma_store_commit();
    tma_store_wait<0>();
}

#endif

#if HAS_WGMMA
// How the operands of a product lie in memory: bytes in all, from one 16 of k to the next, and
// from one 64 of m or n to the next where rows run along those.
struct Tile { const u8* bytes; int size; u32 step, leading; };

// Multiplies tiles as they are swizzled in memory, or fragments [steps, 128, 4] in a's
// place; d [128, N / 2] is in the registers' order.
template <int N, int TransB, int TransA, bool Registers>
DEVICE void multiply(Tile a, Tile b, const u32* fragments, float* d, int steps) {
    DYN_SHARED(u8, s);
    for (int i = threadIdx.x * 16; i < a.size; i += 128 * 16) store16(s + i, load16(a.bytes + i));
    for (int i = threadIdx.x * 16; i < b.size; i += 128 * 16) store16(s + a.size + i, load16(b.bytes + i));
    fence_async_shared();
    __syncthreads();
    float sums[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; i++) sums[i] = d[threadIdx.x * (N / 2) + i];
    const u64 a_tile = wgmma_tile(s, 1024, a.leading), b_tile = wgmma_tile(s + a.size, 1024, b.leading);
    for (int k = 0; k < steps; k++) {
        u32 f[4] = {};
        if constexpr (Registers)
            for (int i = 0; i < 4; i++) f[i] = fragments[(k * 128 + threadIdx.x) * 4 + i];
        wgmma_fence();
        if constexpr (Registers) wgmma<N, TransB>(sums, f, b_tile + (k * b.step >> 4), true);
        else wgmma<N, TransB, TransA>(sums, a_tile + (k * a.step >> 4), b_tile + (k * b.step >> 4), k > 0);
        wgmma_commit();
        wgmma_wait<0>();
    }
#pragma unroll
    for (int i = 0; i < N / 2; i++) d[threadIdx.x * (N / 2) + i] = sums[i];
}

extern "C" __global__ void __launch_bounds__(128) product(const u8* a, int a_size, u32 a_step, u32 a_leading, const u8* b, int b_size, u32 b_step, u32 b_leading,
                                                          const u32* fragments, float* d, int steps, int n, int form) {
    const Tile at = {a, a_size, a_step, a_leading}, bt = {b, b_size, b_step, b_leading};
    if (form == 0 && n == 32) multiply<32, 0, 0, false>(at, bt, fragments, d, steps);
    if (form == 0 && n == 64) multiply<64, 0, 0, false>(at, bt, fragments, d, steps);
    if (form == 0 && n == 128) multiply<128, 0, 0, false>(at, bt, fragments, d, steps);
    if (form == 0 && n == 256) multiply<256, 0, 0, false>(at, bt, fragments, d, steps);
    if (form == 1) multiply<128, 1, 0, false>(at, bt, fragments, d, steps);
    if (form == 2) multiply<64, 1, 1, false>(at, bt, fragments, d, steps);
    if (form == 3) multiply<64, 0, 0, true>(at, bt, fragments, d, steps);
    if (form == 4) multiply<128, 1, 0, true>(at, bt, fragments, d, steps);
}
#endif
