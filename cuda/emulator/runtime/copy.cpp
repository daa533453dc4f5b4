// Asynchronous copies. None lands before somebody waits for it; until then its
// destination holds NaN.
#include <string.h>

#include "check.h"
#include "fault.h"
#include "kernel.h"
#include "race.h"
#include "shared.h"
#include "tensormap.h"

namespace emu {

// ---- By threads: cp.async

struct Copy {
    char *shared;
    const char *global;
    int bytes; // of 16, zeros behind them
    uint64_t group;
    const void *at;
};

struct Box { // a bulk copy
    Map map;
    int corner[5];
    char *shared;
    const char *global; // of a copy without a map
    uint32_t bytes;
    const void *barrier; // of a load
    uint64_t group;      // of a store
    const Thread *thread;
    uint32_t clock;
    const void *at;
};

// What a thread has under way, and the number of its open group.
struct Queue {
    std::vector<Copy> copies;
    std::vector<Box> stores;
    uint64_t copy_group, store_group;
};

static std::vector<Queue> queues; // by thread

void copy_async(void *shared, const void *global, int bytes) {
    const void *at = CALLED_FROM;
    check_shared(at, "cp_async16", shared, 16, 16);
    if ((uintptr_t)global % 16) fail(at, "misaligned access: cp_async16 from address %p, which is no multiple of 16", global);
    if (bytes < 0 || bytes > 16) fail(at, "cp_async16 of %d bytes", bytes);
    race::start_copy(shared, 16, at);
    memset(shared, 0xff, 16);
    Queue &q = queues[self->id];
    q.copies.push_back({(char *)shared, (const char *)global, bytes, q.copy_group, at});
}

void copy_commit() { queues[self->id].copy_group++; }

static void land(const Copy &c) {
    Acting acting(c.at);
    race::read(self, c.global, c.bytes, c.at);
    memset(c.shared + c.bytes, 0, 16 - c.bytes);
    memcpy(c.shared, c.global, c.bytes);
    race::land_copy(self, c.shared, 16, c.at, race::now(self), false);
}

void copy_wait(unsigned groups) {
    Queue &q = queues[self->id];
    size_t landed = 0;
    while (landed < q.copies.size() && q.copies[landed].group + groups < q.copy_group) land(q.copies[landed++]);
    q.copies.erase(q.copies.begin(), q.copies.begin() + landed);
}

// ---- Mbarriers

struct Arrivals {
    const void *address;
    uint32_t count, pending;
    int64_t bytes; // expected and not yet there; below 0 when they came first
    uint32_t parity;
    std::vector<Thread *> waiting;
    race::Clock arriving, ended; // of this phase, and of those before
};

static std::vector<Arrivals> mbarriers;
static std::vector<Box> loads; // under way

static Arrivals *find_mbarrier(const void *address) {
    for (Arrivals &b : mbarriers)
        if (b.address == address) return &b;
    return nullptr;
}

static Arrivals &mbarrier_at(const void *address, const char *primitive, const void *at) {
    Arrivals *b = find_mbarrier(address);
    if (!b) fail(at, "missing mbarrier_init: %s of an mbarrier that nobody has set up", primitive);
    race::read(self, address, 8, at);
    return *b;
}

void mbarrier_init(void *address, uint32_t count) {
    const void *at = CALLED_FROM;
    check_shared(at, "mbarrier_init", address, 8, 8);
    if (!count || count >= 1u << 20) fail(at, "mbarrier_init: a count of %u", count);
    race::write(self, address, 8, at);
    if (Arrivals *b = find_mbarrier(address)) mbarriers.erase(mbarriers.begin() + (b - mbarriers.data()));
    mbarriers.push_back({address, count, count, 0, 0, {}, {}, {}});
}

static void settle(Arrivals &b) {
    if (b.pending || b.bytes) return;
    b.parity ^= 1;
    b.pending = b.count;
    b.ended = b.arriving;
    for (Thread *t : b.waiting) wake(t);
    b.waiting.clear();
}

void mbarrier_arrive(void *address, uint32_t bytes) {
    const void *at = CALLED_FROM;
    Arrivals &b = mbarrier_at(address, "mbarrier_arrive", at);
    if (!b.pending) fail(at, "over-arrival: all %u arrivals of this phase of the mbarrier have come, and it waits for %ld bytes", b.count, (long)b.bytes);
    race::release(b.arriving);
    b.bytes += bytes;
    b.pending--;
    settle(b);
}

static void land_loads(const void *barrier);

void mbarrier_wait(void *address, uint32_t parity) {
    const void *at = CALLED_FROM;
    if (parity > 1) fail(at, "mbarrier_wait: parity %u", parity);
    mbarrier_at(address, "mbarrier_wait", at);
    land_loads(address);
    for (;;) {
        Arrivals &b = *find_mbarrier(address);
        if (b.parity != parity) {
            race::acquire(self, b.ended);
            return;
        }
        b.waiting.push_back(self);
        wait("mbarrier_wait", at);
        land_loads(address);
    }
}

// ---- Boxes: between the rows of a tensor and shared memory

// The 16-byte units of rows are exchanged within a pattern that repeats every 256, 512 or
// 1,024 bytes: bits 4 to 6 of the address, as many as the swizzle has, by the bits three above.
static char *swizzled(char *p, int swizzle) {
    const uint32_t mask = (1u << swizzle) - 1;
    return (char *)((uintptr_t)p ^ (((uintptr_t)p >> 7 & mask) << 4));
}

// Calls row(global, from, to, shared) for each row of the box: elements from..to of it lie
// in the tensor, global being where element 0 would be.
template <class Row> static void each_row(const Box &b, Row row) {
    const Map &m = b.map;
    const int64_t from = b.corner[0] < 0 ? -(int64_t)b.corner[0] : 0;
    int64_t to = (int64_t)m.size[0] - b.corner[0];
    if (to > m.box[0]) to = m.box[0];
    for (uint32_t r = 0; r < m.rows(); r++) {
        bool inside = from < to;
        int64_t offset = (int64_t)b.corner[0] * m.element;
        uint32_t rest = r;
        for (int d = 1; d < m.rank; d++) {
            const int64_t i = (int64_t)b.corner[d] + rest % m.box[d];
            rest /= m.box[d];
            inside = inside && i >= 0 && i < (int64_t)m.size[d];
            offset += i * (int64_t)m.stride[d];
        }
        row((char *)m.base + offset, inside ? from : 0, inside ? to : 0, b.shared + r * m.row_bytes());
    }
}

static void land_row(const Box &b, const char *global, int64_t from, int64_t to, char *shared) {
    const int element = b.map.element, unit = 16 / element;
    if (from < to) race::read(b.thread, global + from * element, (to - from) * element, b.at);
    for (int64_t e = 0; e < b.map.box[0]; e += unit) {
        const int64_t first = e > from ? e : from, last = e + unit < to ? e + unit : to;
        char bytes[16] = {};
        if (first < last) memcpy(bytes + (first - e) * element, global + first * element, (last - first) * element);
        memcpy(swizzled(shared + e * element, b.map.swizzle), bytes, 16);
    }
}

static void store_row(const Box &b, char *global, int64_t from, int64_t to, char *shared) {
    const int element = b.map.element;
    if (from < to) race::write(b.thread, global + from * element, (to - from) * element, b.at);
    for (int64_t e = from; e < to; e++) {
        char *unit = swizzled(shared + e * element / 16 * 16, b.map.swizzle);
        memcpy(global + e * element, unit + e * element % 16, element);
    }
}

// ---- Bulk loads

static void check_map(const Map &m, int rank, const char *primitive, const void *at) {
    if (m.magic != Map::MAGIC) fail(at, "%s: the map is no tensor map", primitive);
    if (m.rank != rank) fail(at, "%s: %d coordinates for a tensor map of %d dimensions", primitive, rank, m.rank);
}

static void check_box(const Box &b, const char *primitive) {
    const size_t align = b.map.swizzle ? 128u << b.map.swizzle : 128;
    check_shared(b.at, primitive, b.shared, b.bytes, align);
}

static Box box_of(const void *map, int rank, const int *corner, void *shared, const char *primitive, const void *at) {
    Box b = {};
    memcpy(&b.map, map, sizeof b.map);
    check_map(b.map, rank, primitive, at);
    memcpy(b.corner, corner, rank * sizeof *corner);
    b.shared = (char *)shared;
    b.bytes = b.map.row_bytes() * b.map.rows();
    b.thread = self;
    b.at = at;
    check_box(b, primitive);
    return b;
}

static void start_load(Box b, const void *barrier, const char *primitive) {
    mbarrier_at(barrier, primitive, b.at);
    b.barrier = barrier;
    b.clock = race::start_copy(b.shared, b.bytes, b.at);
    memset(b.shared, 0xff, b.bytes);
    loads.push_back(b);
    // Somebody may already wait, and finds the copy when it runs again.
    Arrivals &a = *find_mbarrier(barrier);
    for (Thread *t : a.waiting) wake(t);
    a.waiting.clear();
}

void tensor_load(void *shared, const void *map, int rank, const int *corner, void *barrier) {
    const void *at = CALLED_FROM;
    start_load(box_of(map, rank, corner, shared, "tma_load", at), barrier, "tma_load");
}

void bulk_load(void *shared, const void *global, uint32_t bytes, void *barrier) {
    Box b = {};
    b.shared = (char *)shared;
    b.global = (const char *)global;
    b.bytes = bytes;
    b.thread = self;
    b.at = CALLED_FROM;
    if (bytes % 16) fail(b.at, "bulk_load: %u bytes is no multiple of 16", bytes);
    if ((uintptr_t)global % 16) fail(b.at, "misaligned access: bulk_load from address %p, which is no multiple of 16", global);
    check_shared(b.at, "bulk_load", shared, bytes, 16);
    start_load(b, barrier, "bulk_load");
}

static void land(const Box &b) {
    Acting acting(b.at);
    if (b.global) {
        race::read(b.thread, b.global, b.bytes, b.at);
        memcpy(b.shared, b.global, b.bytes);
    } else {
        each_row(b, [&](char *global, int64_t from, int64_t to, char *shared) { land_row(b, global, from, to, shared); });
    }
    race::land_copy(b.thread, b.shared, b.bytes, b.at, b.clock, true);
}

static void land_loads(const void *barrier) {
    for (size_t i = 0; i < loads.size();) {
        if (loads[i].barrier != barrier) {
            i++;
            continue;
        }
        const Box b = loads[i];
        loads.erase(loads.begin() + i);
        land(b);
        Arrivals &a = *find_mbarrier(barrier);
        race::note(a.arriving, b.thread, b.clock);
        a.bytes -= b.bytes;
        settle(a);
    }
}

// ---- Bulk stores

void fence_async() { race::fence_async(); }

void tensor_store(const void *map, int rank, const int *corner, const void *shared) {
    const void *at = CALLED_FROM;
    Box b = box_of(map, rank, corner, (void *)shared, "tma_store", at);
    Queue &q = queues[self->id];
    b.group = q.store_group;
    q.stores.push_back(b);
}

void store_commit() { queues[self->id].store_group++; }

void store_wait(unsigned groups) {
    Queue &q = queues[self->id];
    size_t landed = 0;
    for (; landed < q.stores.size() && q.stores[landed].group + groups < q.store_group; landed++) {
        const Box &b = q.stores[landed];
        Acting acting(b.at);
        race::read_bulk(self, b.shared, b.bytes, b.at);
        each_row(b, [&](char *global, int64_t from, int64_t to, char *from_shared) { store_row(b, global, from, to, from_shared); });
    }
    q.stores.erase(q.stores.begin(), q.stores.begin() + landed);
}

// ---- Ends

void reset_copies() {
    queues.assign(block.size, {});
    mbarriers.clear();
    loads.clear();
}

void exit_copies() {
    const Queue &q = queues[self->id];
    if (!q.stores.empty()) fail(q.stores[0].at, "missing wait: the thread ends while this tma_store reads shared memory");
    if (block.exited + 1 == block.size && !loads.empty()) fail(loads[0].at, "missing wait: the block ends while this copy is under way");
}

} // namespace emu
