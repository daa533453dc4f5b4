// The primitives of dialect.cuh in PTX. Names of instructions: PTX ISA 8.0 and later,
// https://docs.nvidia.com/cuda/parallel-thread-execution.
#pragma once

#define SHARED(T, name, count) __shared__ T name[count]
extern __shared__ __align__(1024) u8 dynamic_shared[];
#define DYN_SHARED(T, name) T* const name = (T*)dynamic_shared

DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// ---- Numbers

DEVICE bf16 to_bf16(float x) {
    bf16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
    return r;
}

DEVICE u32 pack_bf16(float lo, float hi) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}


#define APPROXIMATION(name, instruction)                        \
    DEVICE float name(float x) {                                \
        float r;                                                \
        asm(instruction ".approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); \
        return r;                                               \
    }
APPROXIMATION(fast_exp2, "ex2")
APPROXIMATION(fast_log2, "lg2")
APPROXIMATION(fast_rsqrt, "rsqrt")
APPROXIMATION(fast_reciprocal, "rcp")
#undef APPROXIMATION

// ---- Packed loads and stores

DEVICE u32 load4(const void* p) { return *(const u32*)p; }
DEVICE uint2 load8(const void* p) { return *(const uint2*)p; }
DEVICE uint4 load16(const void* p) { return *(const uint4*)p; }
DEVICE void store4(void* p, u32 v) { *(u32*)p = v; }
DEVICE void store8(void* p, uint2 v) { *(uint2*)p = v; }
DEVICE void store16(void* p, uint4 v) { *(uint4*)p = v; }

DEVICE uint4 load16_once(const void* global) {
    uint4 v;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(__cvta_generic_to_global(global)));
    return v;
}

// ---- Barriers

DEVICE void barrier_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

DEVICE void barrier_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---- Asynchronous copies by threads

DEVICE void cp_async16(void* shared, const void* global, int bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 ::"r"(shared_address(shared)), "l"(__cvta_generic_to_global(global)), "r"(bytes) : "memory");
}

DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// ---- Matrix fragments of a warp

#define LDMATRIX4(name, form)                                                               \
    DEVICE void name(u32 (&m)[4], const void* row) {                                        \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" form ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                     : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])                       \
                     : "r"(shared_address(row)) : "memory");                                \
    }
#define LDMATRIX2(name, form)                                                       \
    DEVICE void name(u32 (&m)[2], const void* row) {                                \
        asm volatile("ldmatrix.sync.aligned.m8n8.x2" form ".shared.b16 {%0, %1}, [%2];" \
                     : "=r"(m[0]), "=r"(m[1]) : "r"(shared_address(row)) : "memory"); \
    }
LDMATRIX4(ldmatrix_x4, "")
LDMATRIX4(ldmatrix_x4_trans, ".trans")
LDMATRIX2(ldmatrix_x2, "")
LDMATRIX2(ldmatrix_x2_trans, ".trans")
#undef LDMATRIX4
#undef LDMATRIX2

DEVICE void mma_m16n8k16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#if HAS_TMA
// ---- Barriers in shared memory

DEVICE void mbarrier_init(Mbarrier* b, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count) : "memory");
}

DEVICE void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

DEVICE void mbarrier_fence_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    fence_async_shared();
}

DEVICE void mbarrier_arrive(Mbarrier* b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}

DEVICE void mbarrier_arrive_expect(Mbarrier* b, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes) : "memory");
}

DEVICE void mbarrier_wait(Mbarrier* b, u32 parity) {
    asm volatile("{\n"
                 ".reg .pred ended;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
                 "@!ended bra again;\n"
                 "}" ::"r"(shared_address(b)), "r"(parity) : "memory");
}

// ---- Bulk copies

#define TMA_LOAD "cp.async.bulk.tensor."
#define TMA_LOAD_TO ".shared::cluster.global.mbarrier::complete_tx::bytes "

DEVICE void tma_load_2d(void* shared, const TensorMap* map, int x, int y, Mbarrier* b) {
    asm volatile(TMA_LOAD "2d" TMA_LOAD_TO "[%0], [%1, {%3, %4}], [%2];"
                 ::"r"(shared_address(shared)), "l"(map), "r"(shared_address(b)), "r"(x), "r"(y) : "memory");
}

DEVICE void tma_load_3d(void* shared, const TensorMap* map, int x, int y, int z, Mbarrier* b) {
    asm volatile(TMA_LOAD "3d" TMA_LOAD_TO "[%0], [%1, {%3, %4, %5}], [%2];"
                 ::"r"(shared_address(shared)), "l"(map), "r"(shared_address(b)), "r"(x), "r"(y), "r"(z) : "memory");
}

DEVICE void tma_load_4d(void* shared, const TensorMap* map, int x, int y, int z, int w, Mbarrier* b) {
    asm volatile(TMA_LOAD "4d" TMA_LOAD_TO "[%0], [%1, {%3, %4, %5, %6}], [%2];"
                 ::"r"(shared_address(shared)), "l"(map), "r"(shared_address(b)), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

#undef TMA_LOAD
#undef TMA_LOAD_TO

DEVICE void tma_prefetch(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }

DEVICE void bulk_load(void* shared, const void* global, u32 bytes, Mbarrier* b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(shared_address(shared)), "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(shared_address(b)) : "memory");
}

DEVICE void tma_store_2d(const TensorMap* map, int x, int y, const void* shared) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
                 ::"l"(map), "r"(shared_address(shared)), "r"(x), "r"(y) : "memory");
}

DEVICE void tma_store_3d(const TensorMap* map, int x, int y, int z, const void* shared) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];"
                 ::"l"(map), "r"(shared_address(shared)), "r"(x), "r"(y), "r"(z) : "memory");
}

DEVICE void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> DEVICE void tma_store_wait() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }
#endif

#if HAS_WGMMA
// ---- Matrix products of a warpgroup

template <int N> DEVICE void registers_release() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> DEVICE void registers_acquire() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }

DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

// An instruction names each of its N / 2 accumulator registers: the numbers in the text
// and the operands behind it.
#define NAMES16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define NAMES32 NAMES16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES64                                                                               \
    NAMES32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
            ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES128                                                                                         \
    NAMES64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"            \
            ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"            \
            ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
            ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define SUMS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12)
#define SUMS32(i) SUMS16(i), SUMS16(i + 16)
#define SUMS64(i) SUMS32(i), SUMS32(i + 32)
#define SUMS128(i) SUMS64(i), SUMS64(i + 64)

// R is N / 2; the operands behind the accumulators are numbered R, R + 1, ...
#define WGMMA_SHARED(N, R, A, B, ACC, TA, TB)                                                    \
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ACC ", 0;\n"                            \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" NAMES##R "}, " A \
                 ", " B ", add, 1, 1, " TA ", " TB ";\n}"                                      \
                 : SUMS##R(0) : "l"(a), "l"(b), "r"((int)accumulate), "n"(TransA), "n"(TransB) : "memory")
#define WGMMA_REGISTERS(N, R, A, B, ACC, TB)                                                     \
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " ACC ", 0;\n"                            \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" NAMES##R "}, {" A \
                 "}, " B ", add, 1, 1, " TB ";\n}"                                             \
                 : SUMS##R(0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)accumulate), "n"(TransB) : "memory")

template <int N, int TransB, int TransA>
DEVICE void wgmma(float (&d)[N / 2], u64 a, u64 b, bool accumulate) {
    static_assert(N == 32 || N == 64 || N == 128 || N == 256, "N is 32, 64, 128 or 256");
    if constexpr (N == 32) WGMMA_SHARED(32, 16, "%16", "%17", "%18", "%19", "%20");
    if constexpr (N == 64) WGMMA_SHARED(64, 32, "%32", "%33", "%34", "%35", "%36");
    if constexpr (N == 128) WGMMA_SHARED(128, 64, "%64", "%65", "%66", "%67", "%68");
    if constexpr (N == 256) WGMMA_SHARED(256, 128, "%128", "%129", "%130", "%131", "%132");
}

template <int N, int TransB>
DEVICE void wgmma(float (&d)[N / 2], const u32 (&a)[4], u64 b, bool accumulate) {
    static_assert(N == 32 || N == 64 || N == 128 || N == 256, "N is 32, 64, 128 or 256");
    if constexpr (N == 32) WGMMA_REGISTERS(32, 16, "%16, %17, %18, %19", "%20", "%21", "%22");
    if constexpr (N == 64) WGMMA_REGISTERS(64, 32, "%32, %33, %34, %35", "%36", "%37", "%38");
    if constexpr (N == 128) WGMMA_REGISTERS(128, 64, "%64, %65, %66, %67", "%68", "%69", "%70");
    if constexpr (N == 256) WGMMA_REGISTERS(256, 128, "%128, %129, %130, %131", "%132", "%133", "%134");
}

#undef NAMES16
#undef NAMES32
#undef NAMES64
#undef NAMES128
#undef SUMS4
#undef SUMS16
#undef SUMS32
#undef SUMS64
#undef SUMS128
#undef WGMMA_SHARED
#undef WGMMA_REGISTERS
#endif
