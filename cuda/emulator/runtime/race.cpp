#include "race.h"

#if EMU_RACES

#include <unordered_map>

#include "fault.h"
#include "memory.h"
#include "shared.h"

namespace emu::race {

enum class Kind : uint8_t {
    plain,
    atomic,
    copying, // under way
    landed,  // written by a bulk copy
};

struct Access {
    uint32_t block; // its number over all launches, 0 for none
    uint32_t clock; // the thread's own
    const void *at;
    uint16_t thread;
    Kind kind;
};

struct Byte { Access write, atomic, read[2]; };

static uint32_t serial, first; // of this block, and of the launch's first
static std::vector<Clock> clocks; // by thread: what it knows of each thread, and of each warpgroup's products
static std::vector<uint32_t> products; // by warpgroup: how many it has begun
static std::vector<uint32_t> fenced_async; // by thread: its clock at its last fence_async
static std::vector<Clock> fenced_grid;     // by thread: what its last __threadfence has ordered

// What earlier blocks released through an atomic operation, and what this block has
// acquired: the clock of each of those blocks.
using Blocks = std::unordered_map<uint32_t, Clock>;
static std::unordered_map<const void *, Blocks> released;
static Blocks acquired;

static void join(Clock &a, const Clock &b) {
    if (a.size() < b.size()) a.resize(b.size());
    for (size_t i = 0; i < b.size(); i++)
        if (a[i] < b[i]) a[i] = b[i];
}

void begin_launch() {
    first = serial + 1;
    released.clear();
}

void begin_block() {
    serial++;
    const unsigned groups = block.size / 128;
    clocks.assign(block.size, Clock(block.size + groups, 0));
    products.assign(groups, 0);
    for (unsigned t = 0; t < block.size; t++) clocks[t][t] = 1;
    fenced_async.assign(block.size, 0);
    fenced_grid.assign(block.size, {});
    acquired.clear();
}

uint32_t now(const Thread *t) { return clocks[t->id][t->id]; }

static void advance(const Thread *t) { clocks[t->id][t->id]++; }

void release(Clock &c) {
    join(c, clocks[self->id]);
    advance(self);
}

void note(Clock &c, const Thread *t, uint32_t clock) {
    if (c.size() < block.size) c.resize(block.size);
    if (c[t->id] < clock) c[t->id] = clock;
}

void acquire(const Thread *t, const Clock &c) { join(clocks[t->id], c); }

void fence_async() {
    fenced_async[self->id] = now(self);
    advance(self);
}

void fence_grid() {
    fenced_grid[self->id] = clocks[self->id];
    advance(self);
}

// ---- The history of each byte

constexpr size_t PAGE = 4096;

static Byte *history(const void *p) {
    static std::unordered_map<uintptr_t, std::vector<Byte>> pages;
    static struct { uintptr_t page; Byte *bytes; } recent[64];
    const uintptr_t page = (uintptr_t)p / PAGE;
    auto &r = recent[page % 64];
    if (r.page != page) {
        auto &kept = pages[page];
        kept.resize(PAGE);
        r.page = page;
        r.bytes = kept.data();
    }
    return r.bytes + (uintptr_t)p % PAGE;
}

// Who accesses: a thread, or for it the products of its warpgroup. Those are numbered
// behind the threads: what wgmma reads is ordered for the whole group by wgmma_wait, what
// a thread reads is not.
struct Agent {
    const Thread *thread;
    unsigned id;
    const Clock &known;
};

static Agent agent(const Thread *t) { return {t, t->id, clocks[t->id]}; }

static bool before(const Access &a, const Agent &now) {
    if (a.block < first) return true; // another launch, or none
    if (a.block == serial) return a.thread == now.id || a.clock <= now.known[a.thread];
    auto block = acquired.find(a.block);
    return block != acquired.end() && a.thread < block->second.size() && a.clock <= block->second[a.thread];
}

static unsigned thread_of(const Access &a) { return a.thread < block.size ? a.thread : (a.thread - block.size) * 128; }

[[noreturn]] static void report(const Agent &now, const char *what, const Access &other, const char *verb, const void *p, const void *at) {
    self = &block.threads[now.thread->id];
    fail(at, "race: %s %s memory at %p that thread %u %s at @%p, with no barrier between", what, near_shared(p) ? "shared" : "global", p, thread_of(other), verb, other.at);
}

static void check_copy(const Agent &now, const Byte &b, const char *verb, const void *at) {
    if (b.write.kind != Kind::copying || b.write.block != serial) return;
    self = &block.threads[now.thread->id];
    fail(at, "missing wait: %s shared memory under the asynchronous copy of thread %u at @%p", verb, b.write.thread, b.write.at);
}

static void check_read(const Agent &now, const void *p, const Byte &b, const void *at) {
    if (b.write.block != serial && near_shared(p)) {
        self = &block.threads[now.thread->id];
        fail(at, "uninitialised: reads shared memory that nobody wrote");
    }
    check_copy(now, b, "reads", at);
    if (!before(b.write, now)) report(now, "reads", b.write, "wrote", p, at);
}

static void check_write(const Agent &now, const void *p, const Byte &b, const void *at) {
    check_copy(now, b, "writes", at);
    if (!before(b.write, now)) report(now, "writes", b.write, "wrote", p, at);
    for (const Access &r : b.read)
        if (!before(r, now)) report(now, "writes", r, "read", p, at);
}

static void check_atomic(const Agent &now, const void *p, const Byte &b, const char *what, const void *at) {
    if (!before(b.atomic, now)) report(now, what, b.atomic, "changed atomically", p, at);
}

static void note_read(Byte &b, const Access &a, const Agent &now) {
    // A slot whose read came before this one is no longer needed.
    Access &slot = before(b.read[0], now) ? b.read[0] : b.read[1];
    slot = a;
}

static bool watched(const void *p) { return (uintptr_t)p - EMU_MEMORY < EMU_MEMORY_SIZE || near_shared(p); }

static void touch(const Agent &now, const void *p, size_t bytes, bool writes, Kind kind, const void *at) {
    if (!watched(p)) return;
    if (near_shared(p) && !in_shared(p, bytes)) {
        self = &block.threads[now.thread->id];
        fail(at, "out of bounds: %s outside the block's shared memory", writes ? "writes" : "reads");
    }
    const Access access = {serial, now.known[now.id], at, (uint16_t)now.id, kind};
    for (const char *q = (const char *)p, *end = q + bytes; q < end; q++) {
        Byte &b = *history(q);
        if (near_shared(q) && b.write.block != serial && writes) b = {}; // of another block
        if (writes) check_write(now, q, b, at);
        else check_read(now, q, b, at);
        if (kind != Kind::atomic) check_atomic(now, q, b, writes ? "writes" : "reads", at);
        if (kind == Kind::atomic) {
            b.atomic = access;
        } else if (writes) {
            b = {access, {}, {}};
        } else {
            note_read(b, access, now);
        }
    }
}

void read(const Thread *t, const void *p, size_t n, const void *at) { touch(agent(t), p, n, false, Kind::plain, at); }
void write(const Thread *t, const void *p, size_t n, const void *at) { touch(agent(t), p, n, true, Kind::plain, at); }

// An atomic operation on global memory orders blocks: what a thread did before its last
// __threadfence is known to whoever finds its mark here.
void atomic(const void *p, size_t n, const void *at) {
    if (near_shared(p)) check_read(agent(self), p, *history(p), at);
    touch(agent(self), p, n, true, Kind::atomic, at);
    if (near_shared(p)) return;
    Blocks &here = released[p];
    for (auto &[number, clock] : here)
        if (number != serial) join(acquired[number], clock);
    if (!fenced_grid[self->id].empty()) join(here[serial], fenced_grid[self->id]);
}

uint32_t start_copy(void *p, size_t n, const void *at) {
    touch(agent(self), p, n, true, Kind::copying, at);
    const uint32_t started = now(self);
    advance(self);
    return started;
}

void land_copy(const Thread *t, void *p, size_t n, const void *at, uint32_t clock, bool bulk) {
    const Kind kind = bulk ? Kind::landed : Kind::plain;
    for (size_t i = 0; i < n; i++) history((char *)p + i)->write = {serial, clock, at, (uint16_t)t->id, kind};
}

static void read_async(const Agent &now, const void *p, size_t n, const void *at) {
    touch(now, p, n, false, Kind::plain, at);
    for (size_t i = 0; i < n; i++) {
        const Access &w = history((const char *)p + i)->write;
        if (w.kind != Kind::plain || w.clock <= fenced_async[w.thread]) continue;
        self = &block.threads[now.thread->id];
        fail(at, "missing fence: reads shared memory that thread %u stored at @%p without fence_async_shared after it", w.thread, w.at);
    }
}

void read_bulk(const Thread *t, const void *p, size_t n, const void *at) { read_async(agent(t), p, n, at); }

static unsigned products_of(const Thread *t) { return block.size + t->id / 128; }

void read_product(const Clock &known, const void *p, size_t n, const void *at) {
    read_async({self, products_of(self), known}, p, n, at);
}

// Each product has a clock of its own.
Clock known_to_group() {
    const unsigned g = self->id / 128, id = products_of(self);
    Clock known(clocks[self->id].size());
    for (unsigned t = g * 128; t < g * 128 + 128; t++) join(known, clocks[t]);
    known[id] = ++products[g];
    return known;
}

void end_product(const Clock &known) {
    const unsigned g = self->id / 128, id = products_of(self);
    for (unsigned t = g * 128; t < g * 128 + 128; t++) clocks[t][id] = known[id];
}

// An access that the compiler reports.
static void hook(const void *p, size_t bytes, bool writes, const void *at) {
    if (self && watched(p)) touch(agent(self), p, bytes, writes, Kind::plain, at);
}

} // namespace emu::race

// ---- What g++ -fsanitize=thread calls before every load and store

#define HOOK(bytes)                                                                                                                     \
    void __tsan_read##bytes(void *p) { emu::race::hook(p, bytes, false, CALLED_FROM); }                                             \
    void __tsan_write##bytes(void *p) { emu::race::hook(p, bytes, true, CALLED_FROM); }                                           \
    void __tsan_unaligned_read##bytes(void *p) { emu::race::hook(p, bytes, false, CALLED_FROM); }                                   \
    void __tsan_unaligned_write##bytes(void *p) { emu::race::hook(p, bytes, true, CALLED_FROM); }
extern "C" {
HOOK(1) HOOK(2) HOOK(4) HOOK(8) HOOK(16)
void __tsan_read_range(void *p, size_t n) { emu::race::hook(p, n, false, CALLED_FROM); }
void __tsan_write_range(void *p, size_t n) { emu::race::hook(p, n, true, CALLED_FROM); }
void __tsan_init() {}
}

#endif
