// CUDA's own words, for g++: what NVRTC knows without a header and the language allows.
#pragma once

#include <math.h>
#include <string.h>

#include <algorithm>

#include "kernel.h"

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__

#define threadIdx (emu::position.thread)
#define blockIdx (emu::position.block)
#define blockDim (emu::position.block_size)
#define gridDim (emu::position.grid_size)

struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };

#define WORD static inline __attribute__((always_inline))

WORD float2 make_float2(float x, float y) { return {x, y}; }
WORD float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
WORD int2 make_int2(int x, int y) { return {x, y}; }
WORD int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
WORD uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
WORD uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

template <class To, class From> WORD To bits_of(From v) {
    static_assert(sizeof(To) >= sizeof(From), "no bit is lost");
    To r{};
    memcpy(&r, &v, sizeof(From));
    return r;
}

WORD float __uint_as_float(unsigned u) { return bits_of<float>(u); }
WORD unsigned __float_as_uint(float f) { return bits_of<unsigned>(f); }
WORD float __int_as_float(int i) { return bits_of<float>(i); }
WORD int __float_as_int(float f) { return bits_of<int>(f); }

using std::max;
using std::min;

#define __expf(x) expf(x) // the C library has functions of these names
#define __logf(x) logf(x)
WORD float __fdividef(float x, float y) { return x / y; }
WORD float rsqrtf(float x) { return (float)(1 / sqrt((double)x)); }
WORD int __float2int_rn(float x) { return (int)rintf(x); }
WORD int __popc(unsigned x) { return __builtin_popcount(x); }
WORD int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
WORD int __ffs(int x) { return __builtin_ffs(x); }
WORD unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((uint64_t)x * y >> 32); }

// ---- Barriers and fences

WORD void __syncthreads() { emu::sync_threads(emu::Vote::none, 0); }
WORD int __syncthreads_count(int p) { return emu::sync_threads(emu::Vote::count, p); }
WORD int __syncthreads_and(int p) { return emu::sync_threads(emu::Vote::all, p); }
WORD int __syncthreads_or(int p) { return emu::sync_threads(emu::Vote::any, p); }
WORD void __syncwarp(unsigned mask = 0xffffffffu) { emu::sync_warp(mask); }
WORD void __threadfence() { emu::thread_fence(); }

// ---- Shuffles and votes

template <class T> WORD T shuffle_bits(emu::Shuffle kind, unsigned mask, T v, unsigned operand, int width) {
    uint64_t r = emu::shuffle(kind, mask, bits_of<uint64_t>(v), operand, width);
    T out;
    memcpy(&out, &r, sizeof(T));
    return out;
}

template <class T> WORD T __shfl_sync(unsigned mask, T v, int lane, int width = 32) {
    return shuffle_bits(emu::Shuffle::index, mask, v, lane, width);
}
template <class T> WORD T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
    return shuffle_bits(emu::Shuffle::up, mask, v, delta, width);
}
template <class T> WORD T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
    return shuffle_bits(emu::Shuffle::down, mask, v, delta, width);
}
template <class T> WORD T __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32) {
    return shuffle_bits(emu::Shuffle::exclusive_or, mask, v, lanes, width);
}

WORD unsigned __ballot_sync(unsigned mask, int p) { return emu::ballot(mask, p); }
WORD int __any_sync(unsigned mask, int p) { return emu::ballot(mask, p) != 0; }
WORD int __all_sync(unsigned mask, int p) { return emu::ballot(mask, p) == mask; }

// ---- Atomic operations: the old value

template <class T, class F> WORD T atomic_update(T *p, F next) {
    uint64_t bits = emu::atomic_load(p, sizeof(T));
    T old;
    memcpy(&old, &bits, sizeof(T));
    emu::atomic_store(p, sizeof(T), bits_of<uint64_t>((T)next(old)));
    return old;
}

template <class T> WORD T atomicAdd(T *p, T v) { return atomic_update(p, [v](T o) { return o + v; }); }
template <class T> WORD T atomicMax(T *p, T v) { return atomic_update(p, [v](T o) { return std::max(o, v); }); }
template <class T> WORD T atomicMin(T *p, T v) { return atomic_update(p, [v](T o) { return std::min(o, v); }); }
template <class T> WORD T atomicExch(T *p, T v) { return atomic_update(p, [v](T) { return v; }); }
template <class T> WORD T atomicCAS(T *p, T expected, T v) { return atomic_update(p, [=](T o) { return o == expected ? v : o; }); }

#undef WORD
