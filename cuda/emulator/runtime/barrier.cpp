// Barriers of the block.
#include "check.h"
#include "fault.h"
#include "kernel.h"
#include "race.h"

namespace emu {

constexpr int BARRIERS = 16, WARPS = 32;

struct Barrier {
    unsigned expected, arrived;
    const void *first;     // where the first thread of this round came to it
    const void *at[WARPS]; // and each warp's last
    std::vector<Thread *> waiting;
    race::Clock clock;
    unsigned votes;
    unsigned result; // votes of the round before
};

static Barrier barriers[BARRIERS];

void reset_barriers() {
    for (Barrier &b : barriers) b = {};
}

// One arrival at b, which `expected` threads make; the last releases those who wait.
static void arrive(Barrier &b, unsigned expected, bool waits, const char *primitive, const void *at) {
    b.expected = expected;
    if (!b.arrived) b.first = at;
    b.at[self->warp()] = at;
    race::release(b.clock);
    if (waits) b.waiting.push_back(self);
    if (++b.arrived < expected) {
        if (waits) wait(primitive, at);
        return;
    }
    std::vector<Thread *> waiting;
    waiting.swap(b.waiting);
    for (Thread *t : waiting) {
        race::acquire(t, b.clock);
        if (t != self) wake(t);
    }
    b.result = b.votes;
    b.expected = b.arrived = b.votes = 0;
    b.clock.clear();
    for (const void *&place : b.at) place = nullptr;
}

int sync_threads(Vote vote, int predicate) {
    const void *at = CALLED_FROM;
    Barrier &b = barriers[0];
    if (block.exited) fail(at, "divergent barrier: %u of the block's %u threads have exited before __syncthreads", block.exited, block.size);
    if (b.arrived && !same_place(b.first, at)) fail(at, "divergent barrier: others of the block wait in __syncthreads at @%p", b.first);
    b.votes += predicate != 0;
    arrive(b, block.size, true, "__syncthreads", at);
    switch (vote) {
    case Vote::count: return b.result;
    case Vote::all: return b.result == block.size;
    case Vote::any: return b.result > 0;
    default: return 0;
    }
}

void barrier(int id, int threads, bool waits) {
    const void *at = CALLED_FROM;
    const char *primitive = waits ? "barrier_sync" : "barrier_arrive";
    if (id < 1 || id >= BARRIERS) fail(at, "%s: barrier %d, and there are 1 to %d", primitive, id, BARRIERS - 1);
    if (threads <= 0 || threads % 32 || threads > (int)block.size) fail(at, "%s: %d threads is no number of whole warps of the block", primitive, threads);
    Barrier &b = barriers[id];
    if (b.arrived && b.expected != (unsigned)threads) fail(at, "%s: %d threads, while others of barrier %d expect %u", primitive, threads, id, b.expected);
    const void *other = b.at[self->warp()];
    if (other && !same_place(other, at)) fail(at, "divergent barrier: lanes of this warp came to barrier %d at @%p", id, other);
    arrive(b, threads, waits, primitive, at);
}

void thread_fence() { race::fence_grid(); }

} // namespace emu
