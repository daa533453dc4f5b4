// How a kernel's mistake ends the launch.
#pragma once

#include "block.h"

namespace emu {

constexpr size_t STACK_BYTES = 128 << 10, STACK_GUARD = 4096;

// Ends the launch: the running thread has made the mistake that the text describes at
// the kernel's instruction `at`. An instruction printed as "@%p" becomes file:line.
[[noreturn]] __attribute__((format(printf, 2, 3))) void fail(const void *at, const char *format, ...);

// No thread is ready: says who waits where.
[[noreturn]] void fail_deadlock();

// Marks memory accesses that the runtime makes for the kernel's instruction `at`, so
// that a fault in them is that instruction's.
struct Acting {
    explicit Acting(const void *at);
    ~Acting();
};

// Whether two instructions belong to one place in the source, calls of inline
// functions included. The compiler may have copied a call.
bool same_place(const void *, const void *);

// ---- For launch.cpp

void catch_signals();
bool failed();
void describe_failure(const char *kernel, caper_emu_fault *);
void forget_failure();

} // namespace emu
