// What a compiled kernel calls in the runtime. Each function finds the kernel's line
// through its return address, so kernels are compiled with line tables.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <type_traits>
#include <utility>

#include "emulator.h"

namespace emu {

struct Index { unsigned x, y, z; };

// Where the running thread is; replaced at each switch.
struct Position { Index thread, block, block_size, grid_size; };
extern Position position;

// ---- Shared memory (shared.cpp)
void *static_shared(const void *declaration, size_t bytes, size_t align);
void *dynamic_shared();
uint32_t shared_address(const void *p);

// ---- Loads and stores (access.cpp)
[[noreturn]] void misaligned(const void *p, size_t size);
uint64_t atomic_load(const void *p, size_t size); // the first half of an atomic operation
void atomic_store(void *p, size_t size, uint64_t value);

// ---- Barriers (barrier.cpp)
enum class Vote { none, count, all, any };
int sync_threads(Vote vote, int predicate);
void barrier(int id, int threads, bool wait);
void sync_warp(uint32_t mask);
void thread_fence();

// ---- Warps (warp.cpp)
enum class Shuffle { index, up, down, exclusive_or };
uint64_t shuffle(Shuffle, uint32_t mask, uint64_t value, unsigned operand, unsigned width);
uint32_t ballot(uint32_t mask, int predicate);
void ldmatrix(uint32_t *matrix, const void *row, int count, bool transpose);
void mma(float *d, const uint32_t *a, uint32_t b0, uint32_t b1);

// ---- Copies (copy.cpp)
void copy_async(void *shared, const void *global, int bytes);
void copy_commit();
void copy_wait(unsigned groups);
void mbarrier_init(void *barrier, uint32_t count);
void mbarrier_arrive(void *barrier, uint32_t bytes);
void mbarrier_wait(void *barrier, uint32_t parity);
void tensor_load(void *shared, const void *map, int rank, const int *at, void *barrier);
void tensor_store(const void *map, int rank, const int *at, const void *shared);
void bulk_load(void *shared, const void *global, uint32_t bytes, void *barrier);
void store_commit();
void store_wait(unsigned groups);
void fence_async();

// ---- Warpgroups (warpgroup.cpp)
void registers(unsigned count);
void product(float *d, int n, uint64_t a, const uint32_t *a_registers, uint64_t b, bool accumulate, bool transpose_a, bool transpose_b);
void product_fence();
void product_commit();
void product_wait(unsigned groups);

// ---- Registry (launch.cpp)

// A kernel by its name. Objects of this type are created as the library is opened.
struct Registration {
    caper_emu_kernel kernel;
    void (*call)(void *kernel, void **params);
    void *function;
    Registration *next;

    template <class... A> Registration(const char *name, void (*f)(A...), unsigned max_threads) {
        static const caper_emu_param params[] = {describe<A>()..., {}};
        kernel = {name, sizeof...(A), params, max_threads};
        function = (void *)f;
        call = [](void *f, void **p) { apply((void (*)(A...))f, p, std::index_sequence_for<A...>()); };
        add(this);
    }

private:
    static void add(Registration *);

    template <class... A, size_t... I> static void apply(void (*f)(A...), void **p, std::index_sequence<I...>) {
        f(*(std::remove_cv_t<A> *)p[I]...);
    }

    template <class T> static constexpr caper_emu_param describe() {
        char kind = 's';
        if (std::is_pointer<T>::value) kind = 'p';
        else if (std::is_floating_point<T>::value) kind = 'f';
        else if (std::is_integral<T>::value) kind = std::is_signed<T>::value ? 'i' : 'u';
        return {kind, sizeof(T), alignof(T)};
    }
};

} // namespace emu
