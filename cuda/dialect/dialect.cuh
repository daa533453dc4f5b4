// The kernel language. A kernel text includes this header alone, contains no assembly
// and calls nothing but what is declared here and CUDA's own words (threadIdx,
// __syncthreads, __shfl_xor_sync, atomicAdd, expf, ...). The same text is then
// compiled for a card by NVRTC, where device.cuh gives each primitive its PTX
// instruction, and for the CPU by g++, where the emulator gives it plain C++.
//
// Kernels are written
//
//     extern "C" __global__ void __launch_bounds__(256) name(const bf16* x, bf16* y, int n) {
//
// so that they are found by their names. Parameters are pointers, numbers and, marked
// __grid_constant__, TensorMaps.
#pragma once

typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#ifdef CAPER_EMULATOR
#include "builtins.h" // what NVRTC knows without a header
#define HAS_TMA 1
#define HAS_WGMMA 1
#else
#define HAS_TMA (__CUDA_ARCH__ >= 900)
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HAS_WGMMA 1
#else
#define HAS_WGMMA 0
#endif
#endif

#define DEVICE static __device__ __forceinline__

constexpr u32 ALL_LANES = 0xffffffffu;

DEVICE u32 lane_id() { return threadIdx.x & 31; } // for blocks that are a row of threads
DEVICE u32 warp_id() { return threadIdx.x >> 5; }

// ---- Shared memory

// SHARED(T, name, count) declares the array T name[count], one for the block.
// DYN_SHARED(T, name) declares T* name, the launch's dynamic shared memory, which
// begins at a multiple of 1,024 bytes. Both hold NaN on the emulator until written.

// The address of p in shared memory, as descriptors hold it.
DEVICE u32 shared_address(const void* p);

// ---- Numbers

// bfloat16: the upper half of a float32. Arithmetic is done in float.
struct bf16 { u16 bits; };

DEVICE float to_f32(bf16 x);            // exact
DEVICE bf16 to_bf16(float x);           // to nearest, ties to even; any NaN to 0x7fff
DEVICE u32 pack_bf16(float lo, float hi); // both rounded, lo in the lower half
DEVICE float low_f32(u32 pair);
DEVICE float high_f32(u32 pair);

// Approximations to about two units in the last place, results below 2^-126 flushed
// to zero. On the emulator: the exact function, rounded.
DEVICE float fast_exp2(float x);
DEVICE float fast_log2(float x);
DEVICE float fast_rsqrt(float x);
DEVICE float fast_reciprocal(float x);

// ---- Packed loads and stores. The address is a multiple of the size.

DEVICE u32 load4(const void* p);
DEVICE uint2 load8(const void* p);
DEVICE uint4 load16(const void* p);
DEVICE uint4 load16_once(const void* global); // read only while the kernel runs, and only once: keeps caches free
DEVICE void store4(void* p, u32 v);
DEVICE void store8(void* p, uint2 v);
DEVICE void store16(void* p, uint4 v);

// ---- Barriers. __syncthreads is barrier 0 of the whole block.

// Waits until `threads` threads (a multiple of 32) have come to barrier `id` (1 to 15)
// by barrier_sync or barrier_arrive. Whole warps come, all lanes at one place.
DEVICE void barrier_sync(int id, int threads);
DEVICE void barrier_arrive(int id, int threads); // does not wait

// ---- Asynchronous copies by threads, sm_80 and up

// Copies `bytes` (0 to 16) bytes from global to shared memory and fills the rest of
// 16 bytes with zeros; both addresses are multiples of 16. Nobody may touch the
// destination before this thread has waited for the copy's group and, if another
// thread reads it, passed a barrier.
DEVICE void cp_async16(void* shared, const void* global, int bytes = 16);
DEVICE void cp_async_commit(); // the copies since the last commit are a group
template <int N> DEVICE void cp_async_wait(); // until at most N of this thread's groups are under way

// ---- Matrix fragments of a warp. All lanes, at one place.

// Lane l holds elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of 8 x 8 matrices of
// 16-bit elements. Lane l names row l % 8 of matrix l / 8, which is 16 bytes at a
// multiple of 16 in shared memory; x2 reads the addresses of lanes 0 to 15 only.
// trans: the matrices are transposed on the way.
DEVICE void ldmatrix_x4(u32 (&matrix)[4], const void* row);
DEVICE void ldmatrix_x4_trans(u32 (&matrix)[4], const void* row);
DEVICE void ldmatrix_x2(u32 (&matrix)[2], const void* row);
DEVICE void ldmatrix_x2_trans(u32 (&matrix)[2], const void* row);

// d [16, 8] += a [16, 16] b [16, 8] in bf16 with sums in float. With g = lane / 4 and
// t = lane % 4, lane holds
//     a[0..3]: rows g, g+8, g, g+8 at columns 2t, 2t+1 (a[0], a[1]) and 2t+8, 2t+9
//     b0, b1:  column g at rows 2t, 2t+1 (b0) and 2t+8, 2t+9
//     d[0..3]: row g at columns 2t, 2t+1, row g+8 at the same
// so ldmatrix_x4 of a row-major [16, 16] gives a (rows 0-7 and 8-15 of columns 0-7,
// then of columns 8-15), and ldmatrix_x2 of b's transpose [8, 16], row-major, gives b.
DEVICE void mma_m16n8k16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1);

#if HAS_TMA
// ---- Barriers in shared memory, sm_90 and up

// An Mbarrier counts arrivals and bytes. A phase ends when `count` arrivals and all
// expected bytes have come; the next begins at once. Phases have parity 0, 1, 0, ...
struct Mbarrier { u64 state; };

DEVICE void mbarrier_init(Mbarrier* b, u32 count); // by one thread, then mbarrier_fence_init, then a block barrier
DEVICE void mbarrier_fence_init();
DEVICE void mbarrier_arrive(Mbarrier* b);
DEVICE void mbarrier_arrive_expect(Mbarrier* b, u32 bytes); // arrives, and announces bytes of bulk copies
DEVICE void mbarrier_wait(Mbarrier* b, u32 parity);         // until the phase of this parity has ended

// ---- Bulk copies, sm_90 and up

// A tensor in global memory cut into boxes, as cuTensorMapEncodeTiled writes it. A
// kernel takes it as `const __grid_constant__ TensorMap`.
struct alignas(128) TensorMap { u64 opaque[16]; };

// Copies a box to shared memory, elements outside the tensor as zeros, and gives its
// bytes to the barrier. x counts along the innermost dimension. The destination is a
// multiple of 128, and of 1,024, 512 or 256 for a swizzle of 128, 64 or 32 bytes.
DEVICE void tma_load_2d(void* shared, const TensorMap* map, int x, int y, Mbarrier* b);
DEVICE void tma_load_3d(void* shared, const TensorMap* map, int x, int y, int z, Mbarrier* b);
DEVICE void tma_load_4d(void* shared, const TensorMap* map, int x, int y, int z, int w, Mbarrier* b);
DEVICE void tma_prefetch(const TensorMap* map); // the map itself
// bytes and both addresses are multiples of 16.
DEVICE void bulk_load(void* shared, const void* global, u32 bytes, Mbarrier* b);

// Copies a box from shared memory, leaving out what lies outside the tensor. The
// writers of the box pass fence_async_shared and a barrier before; the issuing thread
// waits before the box is written again or the thread ends.
DEVICE void tma_store_2d(const TensorMap* map, int x, int y, const void* shared);
DEVICE void tma_store_3d(const TensorMap* map, int x, int y, int z, const void* shared);
DEVICE void tma_store_commit();
template <int N> DEVICE void tma_store_wait(); // until at most N of this thread's groups still read shared memory

// Makes this thread's stores to shared memory visible to bulk copies and to wgmma.
DEVICE void fence_async_shared();
#endif

#if HAS_WGMMA
// ---- Matrix products of a warpgroup (four warps from a multiple of 128), sm_90a

// Gives back, or asks for, registers: N a thread, a multiple of 8 from 24 to 256.
template <int N> DEVICE void registers_release();
template <int N> DEVICE void registers_acquire();

// Describes an operand tile in shared memory written with the 128-byte swizzle: rows
// of 64 bf16 (128 bytes), eight rows to 1,024 bytes, as TMA writes a box 64 wide.
// Without transposition a row runs along k: `stride` is the bytes from eight rows to the
// next eight (1,024 when the tile is one panel). The next 16 of k begin 32 bytes on.
// With transposition a row is one k and runs along m or n: `stride` is the bytes from
// eight k to the next eight, `leading` those from 64 of m or n to the next 64.
DEVICE u64 wgmma_tile(const void* shared, u32 stride = 1024, u32 leading = 16);

// d [64, N] = a [64, 16] b [16, N] + (accumulate ? d : 0) in bf16 with sums in float,
// N 32, 64, 128 or 256. Warp w of the group holds rows 16 w to 16 w + 15, and of them
// lane l, with g = l / 4 and t = l % 4, d[4 j + 0..3] at columns 8 j + 2 t and + 1 of
// row g, then of row g + 8. Both descriptors are the same in all threads. TransA and
// TransB tell that the tile's rows run along m or n instead of k. In the second form a
// is in registers, laid out as mma_m16n8k16's a.
template <int N, int TransB = 0, int TransA = 0>
DEVICE void wgmma(float (&d)[N / 2], u64 a, u64 b, bool accumulate);
template <int N, int TransB = 0>
DEVICE void wgmma(float (&d)[N / 2], const u32 (&a)[4], u64 b, bool accumulate);

DEVICE void wgmma_fence();  // before the first product after d, or a's registers, were written
DEVICE void wgmma_commit(); // the products since the last commit are a group
template <int N> DEVICE void wgmma_wait(); // until at most N groups are under way; d is readable then
#endif

#ifdef CAPER_EMULATOR
#include "emulated.cuh"
#else
#include "device.cuh"
#endif

// ---- Written in the language itself

DEVICE float to_f32(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
DEVICE float low_f32(u32 pair) { return __uint_as_float(pair << 16); }
DEVICE float high_f32(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }

// The eight bf16 of a 16-byte load, and back.
DEVICE void unpack8(float (&x)[8], uint4 v) {
    const u32 pair[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x[2 * i] = low_f32(pair[i]);
        x[2 * i + 1] = high_f32(pair[i]);
    }
}

DEVICE uint4 pack8(const float (&x)[8]) {
    uint4 v;
    v.x = pack_bf16(x[0], x[1]);
    v.y = pack_bf16(x[2], x[3]);
    v.z = pack_bf16(x[4], x[5]);
    v.w = pack_bf16(x[6], x[7]);
    return v;
}

DEVICE void unpack4(float (&x)[4], uint2 v) {
    x[0] = low_f32(v.x), x[1] = high_f32(v.x), x[2] = low_f32(v.y), x[3] = high_f32(v.y);
}

DEVICE uint2 pack4(const float (&x)[4]) { return make_uint2(pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3])); }

// Eight bf16 at p, of which the first `count` are there: the others are read as 0 and not
// written. It is one access where p is a multiple of 16 bytes and all are there. Packed, as
// load16 gives them, several loads are under way before the first is waited for.
DEVICE uint4 load8_packed(const bf16* p, int count) {
    if (count >= 8 && (u64)p % 16 == 0) return load16(p);
    u32 v[8];
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = i < count ? p[i].bits : 0;
    return make_uint4(v[0] | v[1] << 16, v[2] | v[3] << 16, v[4] | v[5] << 16, v[6] | v[7] << 16);
}

DEVICE void load8_bf16(float (&x)[8], const bf16* p, int count) { unpack8(x, load8_packed(p, count)); }

DEVICE void store8_bf16(bf16* p, const float (&x)[8], int count) {
    if (count >= 8 && (u64)p % 16 == 0) {
        store16(p, pack8(x));
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < count) p[i] = to_bf16(x[i]);
}

// The same for four bf16, one access at a multiple of 8 bytes.
DEVICE uint2 load4_packed(const bf16* p, int count) {
    if (count >= 4 && (u64)p % 8 == 0) return load8(p);
    u32 v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = i < count ? p[i].bits : 0;
    return make_uint2(v[0] | v[1] << 16, v[2] | v[3] << 16);
}

DEVICE void store4_bf16(bf16* p, const float (&x)[4], int count) {
    if (count >= 4 && (u64)p % 8 == 0) {
        store8(p, pack4(x));
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i < count) p[i] = to_bf16(x[i]);
}

// The same for N float, a multiple of 4: accesses of 16 bytes.
template <int N> DEVICE void load_f32(float (&x)[N], const float* p, int count) {
    if (count >= N && (u64)p % 16 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            const uint4 v = load16(p + i);
            x[i] = __uint_as_float(v.x), x[i + 1] = __uint_as_float(v.y);
            x[i + 2] = __uint_as_float(v.z), x[i + 3] = __uint_as_float(v.w);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = i < count ? p[i] : 0.f;
}

template <int N> DEVICE void store_f32(float* p, const float (&x)[N], int count) {
    if (count >= N && (u64)p % 16 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 4)
            store16(p + i, make_uint4(__float_as_uint(x[i]), __float_as_uint(x[i + 1]), __float_as_uint(x[i + 2]), __float_as_uint(x[i + 3])));
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (i < count) p[i] = x[i];
}

// 1 / (1 + exp(-x)), for results in bf16: to 1e-5 where |x| < 80.
DEVICE float sigmoid(float x) { return fast_reciprocal(1 + fast_exp2(-1.44269504f * x)); }

// Sum and maximum over the warp, the same bits in all lanes.
DEVICE float warp_sum(float v) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(ALL_LANES, v, o);
    return v;
}

DEVICE float warp_max(float v) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(ALL_LANES, v, o));
    return v;
}

// Sum over each group of `width` lanes, the same bits in all of them. The groups follow each
// other; width is a power of two up to 32.
DEVICE float group_sum(float v, int width) {
    for (int o = width / 2; o > 0; o >>= 1) v += __shfl_xor_sync(ALL_LANES, v, o);
    return v;
}

// Sums of N values over the block, the same bits in all threads and in every run. scratch is
// shared memory for 32 N floats, free again on return. The block is a row of whole warps.
template <int N> DEVICE void block_sum(float (&v)[N], float* scratch) {
    const int warps = blockDim.x / 32;
#pragma unroll
    for (int i = 0; i < N; i++) {
        v[i] = warp_sum(v[i]);
        if (lane_id() == 0) scratch[32 * i + warp_id()] = v[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; i++) v[i] = warp_sum((int)lane_id() < warps ? scratch[32 * i + lane_id()] : 0.f);
    __syncthreads();
}

// Sum of a column of x [rows, stride], in the first of the block's eight warps. Each lane has
// its column, the same in all warps; one at or beyond `cols` gives 0. scratch is shared
// memory for 256 floats, free again on return.
DEVICE float column_sum(const float* x, int rows, i64 stride, int column, int cols, float* scratch) {
    float s = 0;
    if (column < cols) {
#pragma unroll 8
        for (int r = warp_id(); r < rows; r += 8) s += x[r * stride + column];
    }
    scratch[threadIdx.x] = s;
    __syncthreads();
    s = 0;
    if (warp_id() == 0)
        for (int w = 0; w < 8; w++) s += scratch[32 * w + lane_id()];
    __syncthreads();
    return s;
}

#if HAS_WGMMA
DEVICE u64 wgmma_tile(const void* shared, u32 stride, u32 leading) {
    const u64 swizzle128 = 1ull << 62;
    return swizzle128 | (u64)(stride >> 4) << 32 | (u64)(leading >> 4) << 16 | (shared_address(shared) & 0x3ffff) >> 4;
}
#endif
