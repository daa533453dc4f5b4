// The primitives of dialect.cuh in C++, for the emulator.
#pragma once

// A declaration in a function is one array for the block: its address names it.
#define SHARED(T, name, count)        \
    static const char name##_key = 0; \
    T *const name = (T *)emu::static_shared(&name##_key, sizeof(T) * (count), alignof(T))
#define DYN_SHARED(T, name) T *const name = (T *)emu::dynamic_shared()

DEVICE u32 shared_address(const void* p) { return emu::shared_address(p); }

// ---- Numbers

DEVICE bf16 to_bf16(float x) {
    const u32 u = __float_as_uint(x);
    if (x != x) return {0x7fff};
    return {(u16)((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}

DEVICE u32 pack_bf16(float lo, float hi) { return (u32)to_bf16(hi).bits << 16 | to_bf16(lo).bits; }

DEVICE float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0.f, x) : x; }
DEVICE float fast_exp2(float x) { return flushed(exp2f(flushed(x))); }
DEVICE float fast_log2(float x) { return flushed(log2f(flushed(x))); }
DEVICE float fast_rsqrt(float x) { return flushed(rsqrtf(flushed(x))); }
DEVICE float fast_reciprocal(float x) { return flushed(1 / flushed(x)); }

// ---- Packed loads and stores

template <class T> DEVICE T load_packed(const void* p) {
    if ((uintptr_t)p % sizeof(T)) emu::misaligned(p, sizeof(T));
    T v;
    memcpy(&v, p, sizeof(T));
    return v;
}

template <class T> DEVICE void store_packed(void* p, T v) {
    if ((uintptr_t)p % sizeof(T)) emu::misaligned(p, sizeof(T));
    memcpy(p, &v, sizeof(T));
}

DEVICE u32 load4(const void* p) { return load_packed<u32>(p); }
DEVICE uint2 load8(const void* p) { return load_packed<uint2>(p); }
DEVICE uint4 load16(const void* p) { return load_packed<uint4>(p); }
DEVICE uint4 load16_once(const void* global) { return load_packed<uint4>(global); }
DEVICE void store4(void* p, u32 v) { store_packed(p, v); }
DEVICE void store8(void* p, uint2 v) { store_packed(p, v); }
DEVICE void store16(void* p, uint4 v) { store_packed(p, v); }

// ---- Barriers

DEVICE void barrier_sync(int id, int threads) { emu::barrier(id, threads, true); }
DEVICE void barrier_arrive(int id, int threads) { emu::barrier(id, threads, false); }

// ---- Asynchronous copies by threads

DEVICE void cp_async16(void* shared, const void* global, int bytes) { emu::copy_async(shared, global, bytes); }
DEVICE void cp_async_commit() { emu::copy_commit(); }
template <int N> DEVICE void cp_async_wait() { emu::copy_wait(N); }

// ---- Matrix fragments of a warp

DEVICE void ldmatrix_x4(u32 (&m)[4], const void* row) { emu::ldmatrix(m, row, 4, false); }
DEVICE void ldmatrix_x4_trans(u32 (&m)[4], const void* row) { emu::ldmatrix(m, row, 4, true); }
DEVICE void ldmatrix_x2(u32 (&m)[2], const void* row) { emu::ldmatrix(m, row, 2, false); }
DEVICE void ldmatrix_x2_trans(u32 (&m)[2], const void* row) { emu::ldmatrix(m, row, 2, true); }
DEVICE void mma_m16n8k16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) { emu::mma(d, a, b0, b1); }

// ---- Barriers in shared memory

DEVICE void mbarrier_init(Mbarrier* b, u32 count) { emu::mbarrier_init(b, count); }
DEVICE void mbarrier_fence_init() {}
DEVICE void mbarrier_arrive(Mbarrier* b) { emu::mbarrier_arrive(b, 0); }
DEVICE void mbarrier_arrive_expect(Mbarrier* b, u32 bytes) { emu::mbarrier_arrive(b, bytes); }
DEVICE void mbarrier_wait(Mbarrier* b, u32 parity) { emu::mbarrier_wait(b, parity); }

// ---- Bulk copies

DEVICE void tma_load_2d(void* shared, const TensorMap* map, int x, int y, Mbarrier* b) {
    const int at[] = {x, y};
    emu::tensor_load(shared, map, 2, at, b);
}
DEVICE void tma_load_3d(void* shared, const TensorMap* map, int x, int y, int z, Mbarrier* b) {
    const int at[] = {x, y, z};
    emu::tensor_load(shared, map, 3, at, b);
}
DEVICE void tma_load_4d(void* shared, const TensorMap* map, int x, int y, int z, int w, Mbarrier* b) {
    const int at[] = {x, y, z, w};
    emu::tensor_load(shared, map, 4, at, b);
}
DEVICE void tma_prefetch(const TensorMap*) {}
DEVICE void bulk_load(void* shared, const void* global, u32 bytes, Mbarrier* b) { emu::bulk_load(shared, global, bytes, b); }
DEVICE void tma_store_2d(const TensorMap* map, int x, int y, const void* shared) {
    const int at[] = {x, y};
    emu::tensor_store(map, 2, at, shared);
}
DEVICE void tma_store_3d(const TensorMap* map, int x, int y, int z, const void* shared) {
    const int at[] = {x, y, z};
    emu::tensor_store(map, 3, at, shared);
}
DEVICE void tma_store_commit() { emu::store_commit(); }
template <int N> DEVICE void tma_store_wait() { emu::store_wait(N); }
DEVICE void fence_async_shared() { emu::fence_async(); }

// ---- Matrix products of a warpgroup

template <int N> DEVICE void registers_release() { emu::registers(N); }
template <int N> DEVICE void registers_acquire() { emu::registers(N); }

template <int N, int TransB, int TransA>
DEVICE void wgmma(float (&d)[N / 2], u64 a, u64 b, bool accumulate) {
    static_assert(N == 32 || N == 64 || N == 128 || N == 256, "N is 32, 64, 128 or 256");
    emu::product(d, N, a, nullptr, b, accumulate, TransA, TransB);
}

template <int N, int TransB>
DEVICE void wgmma(float (&d)[N / 2], const u32 (&a)[4], u64 b, bool accumulate) {
    static_assert(N == 32 || N == 64 || N == 128 || N == 256, "N is 32, 64, 128 or 256");
    emu::product(d, N, 0, a, b, accumulate, false, TransB);
}

DEVICE void wgmma_fence() { emu::product_fence(); }
DEVICE void wgmma_commit() { emu::product_commit(); }
template <int N> DEVICE void wgmma_wait() { emu::product_wait(N); }
