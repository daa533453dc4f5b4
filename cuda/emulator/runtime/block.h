// The block under way: its threads, and how one gives way to another. Blocks run one
// after the other, on the thread that launched the kernel.
#pragma once

#include <vector>

#include "kernel.h"

namespace emu {

// One CUDA thread, on a stack of its own.
struct Thread {
    void *stack_pointer;
    char *stack; // its lowest byte, above an unmapped page
    Index index;
    unsigned id;
    bool exited;
    const char *waits_in; // the primitive, null when it is ready or running
    const void *at;       // where in the kernel it waits

    unsigned lane() const { return id % 32; }
    unsigned warp() const { return id / 32; }
};

struct Block {
    unsigned size; // threads
    unsigned exited;
    std::vector<Thread> threads;
    uint32_t lanes[32]; // by warp: those that have not exited
};

extern Block block;
extern Thread *self; // the running thread, null outside a block

// Runs all threads of a block to their ends, switching where they wait, in an order
// drawn from *random, or as they became ready if that is 0. Returns early when
// something has failed.
void run_block(void (*call)(void *), void *argument, uint64_t *random);

void wait(const char *primitive, const void *at); // lets others run until somebody wakes this thread
void wake(Thread *);
[[noreturn]] void leave_block(); // back to run_block's caller, for good
void *leave_pointer();           // the stack that leave_block returns to, for a signal handler
uint64_t draw(uint64_t *random);

// The instruction behind the call of the function that this stands in: a kernel's line.
#define CALLED_FROM __builtin_return_address(0)

} // namespace emu

// Saves the registers that calls preserve and the stack pointer, and takes up another.
extern "C" void emu_switch(void **save, void *stack_pointer);
extern "C" [[noreturn]] void emu_resume(void *stack_pointer);
