// Loads and stores that are more than the compiler's own.
#include <string.h>

#include "fault.h"
#include "kernel.h"
#include "race.h"

namespace emu {

void misaligned(const void *p, size_t size) { fail(CALLED_FROM, "misaligned access: %zu bytes at address %p", size, p); }

uint64_t atomic_load(const void *p, size_t size) {
    const void *at = CALLED_FROM;
    if ((uintptr_t)p % size) fail(at, "misaligned access: an atomic operation on %zu bytes at address %p", size, p);
    Acting acting(at);
    race::atomic(p, size, at);
    uint64_t value = 0;
    memcpy(&value, p, size);
    return value;
}

void atomic_store(void *p, size_t size, uint64_t value) {
    Acting acting(CALLED_FROM);
    memcpy(p, &value, size);
}

} // namespace emu

// ---- What g++ -fsanitize=alignment,bounds,shift calls, instead of its own runtime

extern "C" {
void __ubsan_handle_type_mismatch_v1(void *, uintptr_t p) { emu::fail(CALLED_FROM, "misaligned access: address %#lx", p); }
void __ubsan_handle_out_of_bounds(void *, uintptr_t index) { emu::fail(CALLED_FROM, "out of bounds: index %ld of an array", (long)index); }
void __ubsan_handle_shift_out_of_bounds(void *, uintptr_t, uintptr_t by) { emu::fail(CALLED_FROM, "shift by %ld bits", (long)by); }
}
