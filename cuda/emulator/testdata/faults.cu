// Kernels with a planted mistake, and right twins named right_*. A comment "want" stands
// on the line that the emulator must name: plain, or races if only those checks find it, and what it says.
// Launched with 128 threads in a block, 16 KiB of dynamic shared memory; in and out have
// 1,024 elements, map cuts in as [16, 64] into boxes of [8, 64] with a swizzle of 128 bytes.
#include "dialect.cuh"

// ---- Barriers and races

extern "C" __global__ void __launch_bounds__(128) no_barrier(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(float, s, 128);
    s[threadIdx.x] = to_f32(in[threadIdx.x]);
    out[threadIdx.x] = s[127 - threadIdx.x]; // want races: (race|uninitialised): reads
}

extern "C" __global__ void __launch_bounds__(128) right_barrier(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(float, s, 128);
    s[threadIdx.x] = to_f32(in[threadIdx.x]);
    __syncthreads();
    out[threadIdx.x] = s[127 - threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(128) no_second_barrier(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(float, s, 128);
    for (int i = 0; i < 2; i++) {
        s[threadIdx.x] = i; // want races: race: writes shared memory .* that thread [0-9]+ read at faults.cu:[0-9]+
        __syncthreads();
        out[threadIdx.x] = s[127 - threadIdx.x]; // want races: race: reads shared memory .* that thread [0-9]+ wrote at faults.cu:[0-9]+
    }
}

extern "C" __global__ void __launch_bounds__(128) right_second_barrier(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(float, s, 128);
    for (int i = 0; i < 2; i++) {
        s[threadIdx.x] = i;
        __syncthreads();
        out[threadIdx.x] = s[127 - threadIdx.x];
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(128) no_syncwarp(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(float, s, 128);
    s[threadIdx.x] = 1;
    const float v = __shfl_xor_sync(ALL_LANES, 1.f, 1); // a shuffle orders no memory
    out[threadIdx.x] = v + s[threadIdx.x ^ 1]; // want races: race: reads shared
}

extern "C" __global__ void __launch_bounds__(128) right_syncwarp(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(float, s, 128);
    s[threadIdx.x] = 1;
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}

extern "C" __global__ void __launch_bounds__(128) race_of_blocks(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    out[threadIdx.x] += blockIdx.x; // want races: race: (reads|writes) global
}

extern "C" __global__ void __launch_bounds__(128) right_blocks(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    atomicAdd(&out[threadIdx.x], (float)blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(128) plain_and_atomic(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    if (threadIdx.x == 0) out[0] = 0; // want races: race: writes global
    atomicAdd(&out[0], 1.f);          // want races: race: (reads|writes) global
}

extern "C" __global__ void __launch_bounds__(128) uninitialised(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(float, s, 128);
    if (threadIdx.x != 7) s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x]; // want races: uninitialised: reads shared memory that nobody wrote
}

extern "C" __global__ void __launch_bounds__(128) divergent(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    if (threadIdx.x < 64) __syncthreads(); // want plain: threads wait for ever: 64 in __syncthreads .*64 exited|have exited before
    out[threadIdx.x] = 1;
}

extern "C" __global__ void __launch_bounds__(128) two_barriers(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    if (threadIdx.x < 64)
        __syncthreads(); // want plain: divergent barrier: others of the block wait in __syncthreads at faults.cu:[0-9]+
    else
        __syncthreads(); // want plain: divergent barrier: others of the block wait in __syncthreads at faults.cu:[0-9]+
}

extern "C" __global__ void __launch_bounds__(128) exited(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    if (threadIdx.x >= 100) return;
    __syncthreads(); // want plain: threads wait for ever: 100 in __syncthreads .* 28 exited|have exited before __syncthreads
    out[threadIdx.x] = 1;
}

extern "C" __global__ void __launch_bounds__(128) wrong_count(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    barrier_sync(1, threadIdx.x < 64 ? 64 : 128); // want plain: threads, while others of barrier 1 expect|threads wait for ever
}

extern "C" __global__ void __launch_bounds__(128) right_count(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(float, s, 64);
    if (threadIdx.x < 64) {
        s[threadIdx.x] = 2;
        barrier_arrive(1, 128);
    } else {
        barrier_sync(1, 128);
        out[threadIdx.x] = s[threadIdx.x - 64];
    }
    barrier_sync(2 + threadIdx.x / 64, 64);
}

extern "C" __global__ void __launch_bounds__(128) no_such_barrier(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    barrier_sync(16, 128); // want plain: barrier_sync: barrier 16, and there are 1 to 15
}

extern "C" __global__ void __launch_bounds__(128) part_of_a_warp(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    barrier_arrive(1, 100); // want plain: barrier_arrive: 100 threads is no number of whole warps
}

extern "C" __global__ void __launch_bounds__(128) two_counts(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    barrier_sync(1, threadIdx.x < 32 ? 64 : 128); // want plain: threads, while others of barrier 1 expect
}

extern "C" __global__ void __launch_bounds__(128) lanes_at_two_barriers(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    if (lane_id() < 16)
        barrier_sync(1, 128); // want plain: divergent barrier: lanes of this warp came to barrier 1 at faults.cu
    else
        barrier_sync(1, 128); // want plain: divergent barrier: lanes of this warp came to barrier 1 at faults.cu
}

// ---- Bounds and alignment

extern "C" __global__ void __launch_bounds__(128) read_past_end(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    out[threadIdx.x] = to_f32(in[threadIdx.x + 897]); // want plain: out of bounds: reads address
}

extern "C" __global__ void __launch_bounds__(128) write_past_end(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    out[threadIdx.x * 9] = 1; // want plain: out of bounds: writes to address
}

extern "C" __global__ void __launch_bounds__(128) write_before_start(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    out[(int)threadIdx.x - 1] = 1; // want plain: out of bounds: writes to address
}

extern "C" __global__ void __launch_bounds__(128) null_pointer(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    const float* none = out - (u64)out / 4;
    out[0] = none[threadIdx.x]; // want plain: out of bounds: reads address 0,|reads address 0x
}

extern "C" __global__ void __launch_bounds__(128) past_dynamic(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(float, s);
    s[threadIdx.x + 3969] = 1; // want plain: out of bounds: writes.* outside the block's shared memory
}

extern "C" __global__ void __launch_bounds__(128) past_declared(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(float, s, 128);
    s[threadIdx.x + 1] = 1; // want races: out of bounds: writes outside the block's shared memory
}

extern "C" __global__ void __launch_bounds__(128) past_array(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    float a[4] = {1, 2, 3, 4};
    out[threadIdx.x] = a[threadIdx.x & 7]; // want plain: out of bounds: index [4-7] of an array
}

extern "C" __global__ void __launch_bounds__(128) copy_past_end(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    cp_async16(s + threadIdx.x * 8, in + (threadIdx.x + 1) * 8); // want plain: out of bounds: reads address
    cp_async_commit();
    cp_async_wait<0>();
}

extern "C" __global__ void __launch_bounds__(128) packed_misaligned(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    store16(out + threadIdx.x, make_uint4(0, 0, 0, 0)); // want plain: misaligned access: 16 bytes
}

extern "C" __global__ void __launch_bounds__(128) cast_misaligned(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    out[threadIdx.x] = *(const float*)(in + threadIdx.x); // want plain: misaligned access
}

extern "C" __global__ void __launch_bounds__(128) copy_misaligned(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    cp_async16(s + threadIdx.x * 8, in + threadIdx.x * 4); // want plain: misaligned access: cp_async16
}

extern "C" __global__ void __launch_bounds__(128) ldmatrix_misaligned(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    u32 m[4];
    ldmatrix_x4(m, s + lane_id() * 12); // want plain: misaligned access: ldmatrix
    out[threadIdx.x] = m[0];
}

extern "C" __global__ void __launch_bounds__(128) stack_overflow(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    volatile float big[1 << 16];
    for (int i = 0; i < 1 << 16; i += 512) big[65535 - i] = i; // want plain: stack overflow|out of bounds
    out[0] = big[5];
}

extern "C" __global__ void __launch_bounds__(128) atomic_misaligned(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    atomicAdd((float*)((u8*)out + 2), 1.f); // want plain: misaligned access: an atomic operation on 4 bytes
}

extern "C" __global__ void __launch_bounds__(128) shift_out_of_range(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    out[threadIdx.x] = 1u << (threadIdx.x + 1); // want plain: shift by [0-9]+ bits
}

extern "C" __global__ void __launch_bounds__(128) load_past_shared(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    DYN_SHARED(u8, s);
    if (threadIdx.x != 0) return;
    mbarrier_init(b, 1);
    mbarrier_arrive_expect(b, 1024);
    tma_load_2d(s + (16 << 10), &map, 0, 0, b); // want plain: out of bounds: tma_load outside the block's shared memory
}

// ---- Warps

extern "C" __global__ void __launch_bounds__(128) not_in_own_mask(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    out[threadIdx.x] = __shfl_sync(0xffff, 1.f, 0); // want plain: wrong mask: lane [0-9]+ is not in its own mask
}

extern "C" __global__ void __launch_bounds__(128) source_not_in_mask(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    if (lane_id() < 16) out[threadIdx.x] = __shfl_xor_sync(0xffff, 1.f, 16); // want plain: wrong mask: __shfl_xor_sync reads lane [0-9]+, which is not in the mask
}

extern "C" __global__ void __launch_bounds__(128) right_masks(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    float v = threadIdx.x;
    if (lane_id() < 16) v += __shfl_xor_sync(0xffff, v, 8);
    else v += __shfl_xor_sync(0xffff0000, v, 8);
    out[threadIdx.x] = v;
}

extern "C" __global__ void __launch_bounds__(128) exited_lane(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    if (lane_id() == 31) return;
    out[threadIdx.x] = __shfl_sync(ALL_LANES, 1.f, 0); // want plain: names lane 31, which has exited|threads wait for ever
}

extern "C" __global__ void __launch_bounds__(128) two_shuffles(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    float v = 1;
    if (lane_id() & 1)
        v = __shfl_xor_sync(ALL_LANES, v, 1); // want plain: divergent warp: __shfl_xor_sync, while other lanes are in __shfl_xor_sync at faults.cu
    else
        v = __shfl_xor_sync(ALL_LANES, v, 2); // want plain: divergent warp: __shfl_xor_sync, while other lanes are in __shfl_xor_sync at faults.cu
    out[threadIdx.x] = v;
}

extern "C" __global__ void __launch_bounds__(128) half_a_warp_multiplies(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    float d[4] = {};
    const u32 a[4] = {};
    if (lane_id() < 16) mma_m16n8k16(d, a, 0, 0); // want plain: threads wait for ever: .* in mma|names lane [0-9]+, which has exited
    out[threadIdx.x] = d[0];
}

extern "C" __global__ void __launch_bounds__(128) two_masks(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    out[threadIdx.x] = __shfl_xor_sync(lane_id() == 5 ? 0x3fu : ALL_LANES, 1.f, 1); // want plain: wrong mask: 0x[0-9a-f]+ in __shfl_xor_sync, while other lanes give
}

extern "C" __global__ void __launch_bounds__(128) odd_width(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    out[threadIdx.x] = __shfl_sync(ALL_LANES, 1.f, 0, 12); // want plain: width 12 is no power of two
}

// ---- Asynchronous copies

extern "C" __global__ void __launch_bounds__(128) copy_without_wait(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    cp_async16(s + threadIdx.x * 8, in + threadIdx.x * 8);
    cp_async_commit();
    __syncthreads();
    out[threadIdx.x] = to_f32(s[threadIdx.x]); // want races: missing wait: reads shared memory under the asynchronous copy
}

extern "C" __global__ void __launch_bounds__(128) copy_wait_too_weak(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    cp_async16(s + threadIdx.x * 8, in + threadIdx.x * 8);
    cp_async_commit();
    cp_async_wait<1>();
    out[threadIdx.x] = to_f32(s[threadIdx.x * 8]); // want races: missing wait: reads shared memory under the asynchronous copy
}

extern "C" __global__ void __launch_bounds__(128) copy_without_barrier(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    cp_async16(s + threadIdx.x * 8, in + threadIdx.x * 8);
    cp_async_commit();
    cp_async_wait<0>();
    out[threadIdx.x] = to_f32(s[(threadIdx.x ^ 1) * 8]); // want races: missing wait|race|uninitialised
}

extern "C" __global__ void __launch_bounds__(128) right_copy(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    cp_async16(s + threadIdx.x * 8, in + threadIdx.x * 8);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    out[threadIdx.x] = to_f32(s[(threadIdx.x ^ 1) * 8]);
}

extern "C" __global__ void __launch_bounds__(128) copy_of_17_bytes(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    cp_async16(s + threadIdx.x * 8, in, 17); // want plain: cp_async16 of 17 bytes
}

// ---- Mbarriers and bulk copies

extern "C" __global__ void __launch_bounds__(128) no_init(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    mbarrier_arrive(b); // want plain: missing mbarrier_init
}

extern "C" __global__ void __launch_bounds__(128) init_without_barrier(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    if (threadIdx.x == 0) mbarrier_init(b, 128);
    mbarrier_arrive(b); // want races: missing mbarrier_init|race: reads
}

extern "C" __global__ void __launch_bounds__(128) over_arrival(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    if (threadIdx.x == 0) {
        mbarrier_init(b, 1);
        mbarrier_arrive_expect(b, 16);
        mbarrier_arrive(b); // want plain: over-arrival
    }
}

extern "C" __global__ void __launch_bounds__(128) wait_without_arrival(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    if (threadIdx.x == 0) mbarrier_init(b, 1);
    __syncthreads();
    mbarrier_wait(b, 0); // want plain: threads wait for ever: 128 in mbarrier_wait
}

extern "C" __global__ void __launch_bounds__(128) too_few_bytes(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    DYN_SHARED(u8, s);
    if (threadIdx.x == 0) {
        mbarrier_init(b, 1);
        mbarrier_fence_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(b, 2048);
        tma_load_2d(s, &map, 0, 0, b);
    }
    mbarrier_wait(b, 0); // want plain: threads wait for ever: 128 in mbarrier_wait
}

extern "C" __global__ void __launch_bounds__(128) load_without_wait(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    DYN_SHARED(bf16, s);
    if (threadIdx.x == 0) {
        mbarrier_init(b, 1);
        mbarrier_fence_init();
        mbarrier_arrive_expect(b, 1024);
        tma_load_2d(s, &map, 0, 0, b); // want plain: missing wait: the block ends while this copy is under way
    }
    __syncthreads();
    out[threadIdx.x] = to_f32(s[threadIdx.x]); // want races: missing wait: reads shared memory under the asynchronous copy
}

extern "C" __global__ void __launch_bounds__(128) right_load(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    DYN_SHARED(bf16, s);
    if (threadIdx.x == 0) {
        mbarrier_init(b, 1);
        mbarrier_fence_init();
    }
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        if (threadIdx.x == 0) {
            mbarrier_arrive_expect(b, 1024 + 256);
            tma_load_2d(s, &map, 0, 8 * (i % 2), b);
            bulk_load(s + 512, in, 256, b);
        }
        mbarrier_wait(b, i % 2);
        out[threadIdx.x] = to_f32(s[threadIdx.x]) + to_f32(s[threadIdx.x + 512]);
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(128) box_misaligned(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    DYN_SHARED(u8, s);
    if (threadIdx.x != 0) return;
    mbarrier_init(b, 1);
    mbarrier_arrive_expect(b, 1024);
    tma_load_2d(s + 128, &map, 0, 0, b); // want plain: misaligned access: tma_load
}

extern "C" __global__ void __launch_bounds__(128) store_without_wait(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(u8, s);
    for (int i = threadIdx.x; i < 512; i += 128) ((bf16*)s)[i] = to_bf16(1);
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x != 0) return;
    tma_store_2d(&map, 0, 0, s); // want plain: missing wait: the thread ends while this tma_store
    tma_store_commit();
}

extern "C" __global__ void __launch_bounds__(128) store_without_fence(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(u8, s);
    for (int i = threadIdx.x; i < 512; i += 128) ((bf16*)s)[i] = to_bf16(1);
    __syncthreads();
    if (threadIdx.x != 0) return;
    tma_store_2d(&map, 0, 0, s); // want races: missing fence: reads shared memory that thread [0-9]+ stored
    tma_store_commit();
    tma_store_wait<0>();
}

extern "C" __global__ void __launch_bounds__(128) right_store(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(u8, s);
    for (int i = threadIdx.x; i < 512; i += 128) ((bf16*)s)[i] = to_bf16(1);
    fence_async_shared();
    __syncthreads();
    if (threadIdx.x != 0 || blockIdx.x != 0) return;
    tma_store_2d(&map, 0, 0, s);
    tma_store_commit();
    tma_store_wait<0>();
}

extern "C" __global__ void __launch_bounds__(128) count_of_none(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    mbarrier_init(b, 0); // want plain: mbarrier_init: a count of 0
}

extern "C" __global__ void __launch_bounds__(128) third_parity(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    if (threadIdx.x != 0) return;
    mbarrier_init(b, 1);
    mbarrier_wait(b, 2); // want plain: mbarrier_wait: parity 2
}

extern "C" __global__ void __launch_bounds__(128) bulk_of_24_bytes(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    DYN_SHARED(u8, s);
    if (threadIdx.x != 0) return;
    mbarrier_init(b, 1);
    mbarrier_arrive_expect(b, 24);
    bulk_load(s, in, 24, b); // want plain: bulk_load: 24 bytes is no multiple of 16
}

extern "C" __global__ void __launch_bounds__(128) bulk_misaligned(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    DYN_SHARED(u8, s);
    if (threadIdx.x != 0) return;
    mbarrier_init(b, 1);
    mbarrier_arrive_expect(b, 32);
    bulk_load(s, in + 4, 32, b); // want plain: misaligned access: bulk_load from address
}

extern "C" __global__ void __launch_bounds__(128) other_rank(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    SHARED(Mbarrier, b, 1);
    DYN_SHARED(u8, s);
    if (threadIdx.x != 0) return;
    mbarrier_init(b, 1);
    mbarrier_arrive_expect(b, 1024);
    tma_load_3d(s, &map, 0, 0, 0, b); // want plain: tma_load: 3 coordinates for a tensor map of 2 dimensions
}

// ---- Warpgroups

DEVICE void fill_tiles(bf16* s) {
    for (int i = threadIdx.x; i < (64 + 32) * 64; i += 128) s[i] = to_bf16(i % 7);
}

extern "C" __global__ void __launch_bounds__(128) product_without_wait(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    float d[16] = {};
    fill_tiles(s);
    fence_async_shared();
    __syncthreads();
    wgmma_fence();
    wgmma<32>(d, wgmma_tile(s), wgmma_tile(s + 4096), true); // want plain: missing wait: the thread ends while this wgmma
    wgmma_commit();
}

extern "C" __global__ void __launch_bounds__(128) product_without_fence(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    float d[16] = {};
    fill_tiles(s);
    fence_async_shared();
    __syncthreads();
    wgmma<32>(d, wgmma_tile(s), wgmma_tile(s + 4096), true); // want plain: missing fence: wgmma without wgmma_fence
    wgmma_commit();
    wgmma_wait<0>();
}

extern "C" __global__ void __launch_bounds__(128) product_of_stores(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    float d[16] = {};
    fill_tiles(s);
    __syncthreads();
    wgmma_fence();
    wgmma<32>(d, wgmma_tile(s), wgmma_tile(s + 4096), true); // want races: missing fence: reads shared memory that thread [0-9]+ stored
    wgmma_commit();
    wgmma_wait<0>();
}

extern "C" __global__ void __launch_bounds__(128) tile_misaligned(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    float d[16] = {};
    wgmma_fence();
    wgmma<32>(d, wgmma_tile(s + 64), wgmma_tile(s + 4096), true); // want plain: misaligned access: wgmma's operand a
}

extern "C" __global__ void __launch_bounds__(128) overwritten_operand(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    float d[16] = {};
    fill_tiles(s);
    fence_async_shared();
    __syncthreads();
    wgmma_fence();
    wgmma<32>(d, wgmma_tile(s), wgmma_tile(s + 4096), true); // want races: race: reads shared|missing fence
    wgmma_commit();
    s[threadIdx.x] = to_bf16(0); // before the product has read it
    wgmma_wait<0>();
    out[threadIdx.x] = d[0];
}

extern "C" __global__ void __launch_bounds__(128) right_product(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    float d[16] = {};
    fill_tiles(s);
    fence_async_shared();
    __syncthreads();
    wgmma_fence();
    wgmma<32>(d, wgmma_tile(s), wgmma_tile(s + 4096), true);
    wgmma_commit();
    wgmma_wait<0>();
    __syncthreads();
    s[threadIdx.x] = to_bf16(0);
    out[threadIdx.x] = d[0];
}

extern "C" __global__ void __launch_bounds__(128) no_tile(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    float d[16] = {};
    wgmma_fence();
    wgmma<32>(d, 5, wgmma_tile(s), true); // want plain: wgmma: a's descriptor is not wgmma_tile's
}

extern "C" __global__ void __launch_bounds__(128) two_tiles(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    DYN_SHARED(bf16, s);
    float d[16] = {};
    wgmma_fence();
    wgmma<32>(d, wgmma_tile(s + (threadIdx.x == 3 ? 512 : 0)), wgmma_tile(s + 4096), true); // want plain: wgmma: threads of one warpgroup give different descriptors
}

extern "C" __global__ void __launch_bounds__(128) divergent_warpgroup(const bf16* in, float* out, const __grid_constant__ TensorMap map) {
    if (threadIdx.x < 64)
        wgmma_fence(); // want plain: divergent warpgroup: wgmma_fence, while other threads are in
    else
        wgmma_commit(); // want plain: divergent warpgroup: wgmma_commit, while other threads are in
}
