// Products of warpgroups: wgmma. They are computed when they are waited for; until then
// the accumulators hold NaN.
#include <math.h>
#include <string.h>

#include <algorithm>

#include "check.h"
#include "fault.h"
#include "kernel.h"
#include "race.h"
#include "shared.h"

namespace emu {

constexpr int THREADS = 128, M = 64, K = 16;

// Accumulators that products are under way for, with their true values.
struct Accumulator {
    float *registers[THREADS];
    int n;
    int products; // under way
    std::vector<float> value; // [64, n]
};

struct Operand {
    uint64_t tile; // as wgmma_tile packs it
    bool transposed;
};

struct Product {
    Accumulator *d;
    Operand a, b;
    bool a_in_registers, accumulate;
    uint32_t a_registers[THREADS][4];
    uint64_t group;
    race::Clock known;
    const void *at;
};

struct Group {
    const char *primitive; // what its threads wait in for the others
    const void *at;
    unsigned arrived;
    void *argument[THREADS];
    bool fenced;
    uint64_t open; // the number of the group of products that commit closes
    std::vector<Product> products;
    std::vector<Accumulator *> accumulators;
};

static std::vector<Group> groups; // by warpgroup

void reset_warpgroups() {
    for (Group &g : groups)
        for (Accumulator *a : g.accumulators) delete a;
    groups.assign((block.size + THREADS - 1) / THREADS, {});
}

void exit_warpgroups() {
    const Group &g = groups[self->id / THREADS];
    if (!g.products.empty()) fail(g.products[0].at, "missing wait: the thread ends while this wgmma is under way");
}

// Waits for all threads of the warpgroup; together(group) runs once.
template <class Together> static void meet(const char *primitive, void *argument, const void *at, Together together) {
    const unsigned first = self->id / THREADS * THREADS;
    if (first + THREADS > block.size) fail(at, "%s: the last %u threads of the block are no warpgroup", primitive, block.size - first);
    Group &g = groups[self->id / THREADS];
    if (g.arrived && (g.primitive != primitive || !same_place(g.at, at)))
        fail(at, "divergent warpgroup: %s, while other threads are in %s at @%p", primitive, g.primitive, g.at);
    g.primitive = primitive;
    g.at = at;
    g.argument[self->id % THREADS] = argument;
    if (++g.arrived < THREADS) {
        wait(primitive, at);
        return;
    }
    g.arrived = 0;
    together(g);
    for (unsigned t = first; t < first + THREADS; t++)
        if (t != self->id) wake(&block.threads[t]);
}

void registers(unsigned count) {
    const void *at = CALLED_FROM;
    if (count < 24 || count > 256 || count % 8) fail(at, "%u registers a thread is no multiple of 8 from 24 to 256", count);
    meet("setmaxnreg", nullptr, at, [](Group &) {});
}

void product_fence() {
    meet("wgmma_fence", nullptr, CALLED_FROM, [](Group &g) { g.fenced = true; });
}

// ---- The layout of accumulators: thread t of the group holds element i

static int row_of(int t, int i) { return t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8; }
static int column_of(int t, int i) { return i / 4 * 8 + t % 4 * 2 + i % 2; }

static Accumulator *take(Group &g, float *const *registers, int n) {
    for (Accumulator *a : g.accumulators)
        if (a->registers[0] == registers[0]) return a;
    Accumulator *a = new Accumulator;
    a->n = n;
    a->products = 0;
    a->value.resize(M * n);
    std::copy(registers, registers + THREADS, a->registers);
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < n / 2; i++) {
            a->value[row_of(t, i) * n + column_of(t, i)] = registers[t][i];
            registers[t][i] = NAN;
        }
    g.accumulators.push_back(a);
    return a;
}

static void give_back(Group &g, Accumulator *a) {
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < a->n / 2; i++) a->registers[t][i] = a->value[row_of(t, i) * a->n + column_of(t, i)];
    g.accumulators.erase(std::find(g.accumulators.begin(), g.accumulators.end(), a));
    delete a;
}

// ---- Issue

struct Issue {
    float *d;
    int n;
    uint64_t a, b;
    const uint32_t *a_registers;
    bool accumulate, transpose_a, transpose_b;
    const void *at;
};

static void check_tile(const char *operand, uint64_t tile, bool transposed, const void *at) {
    const uint32_t start = (tile & 0x3fff) << 4;
    if (tile >> 62 != 1) fail(at, "wgmma: %s's descriptor is not wgmma_tile's", operand);
    if (transposed ? start % 1024 != 0 : start % 1024 >= 128) fail(at, "misaligned access: wgmma's operand %s begins inside a swizzled tile, at shared address %#x", operand, start);
}

static void issue(Group &g) {
    const Issue &first = *(Issue *)g.argument[0];
    float *registers[THREADS];
    Product p = {};
    for (int t = 0; t < THREADS; t++) {
        const Issue &i = *(Issue *)g.argument[t];
        if (i.a != first.a || i.b != first.b || i.accumulate != first.accumulate || i.n != first.n)
            fail(first.at, "wgmma: threads of one warpgroup give different descriptors");
        registers[t] = i.d;
        if (i.a_registers) memcpy(p.a_registers[t], i.a_registers, sizeof p.a_registers[t]);
    }
    p.d = take(g, registers, first.n);
    p.d->products++;
    p.a = {first.a, first.transpose_a};
    p.b = {first.b, first.transpose_b};
    p.a_in_registers = first.a_registers;
    p.accumulate = first.accumulate;
    p.group = g.open;
    p.known = race::known_to_group();
    p.at = first.at;
    g.products.push_back(p);
}

void product(float *d, int n, uint64_t a, const uint32_t *a_registers, uint64_t b, bool accumulate, bool transpose_a, bool transpose_b) {
    Issue i = {d, n, a, b, a_registers, accumulate, transpose_a, transpose_b, CALLED_FROM};
    if (!groups[self->id / THREADS].fenced) fail(i.at, "missing fence: wgmma without wgmma_fence since its registers were last read or written");
    if (!a_registers) check_tile("a", a, transpose_a, i.at);
    check_tile("b", b, transpose_b, i.at);
    meet("wgmma", &i, i.at, issue);
}

void product_commit() {
    meet("wgmma_commit", nullptr, CALLED_FROM, [](Group &g) { g.open++; });
}

// ---- Computing

static float f32_of(uint16_t bits) {
    const uint32_t u = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

// The 16 bytes of an operand that begin at row r (of m or n) and k: 8 of k, or, if
// transposed, 8 rows at one k.
static const char *unit_at(const Operand &o, int r, int k) {
    const uint32_t start = (o.tile & 0x3fff) << 4, leading = (o.tile >> 16 & 0x3fff) << 4, stride = (o.tile >> 32 & 0x3fff) << 4;
    uint32_t address = o.transposed ? start + r / 64 * leading + k / 8 * stride + k % 8 * 128 + r % 64 * 2
                                    : start + r / 8 * stride + r % 8 * 128 + k * 2;
    address ^= (address >> 7 & 7) << 4;
    return shared_at(address);
}

// Reads an operand of `rows` rows into out [16, rows].
static void read_operand(const Product &p, const Operand &o, int rows, float *out) {
    for (int r = 0; r < rows; r += o.transposed ? 8 : 1)
        for (int k = 0; k < K; k += o.transposed ? 1 : 8) {
            const char *unit = unit_at(o, r, k);
            check_shared(p.at, "wgmma", unit, 16, 16);
            race::read_product(p.known, unit, 16, p.at);
            uint16_t element[8];
            memcpy(element, unit, 16);
            for (int e = 0; e < 8; e++) {
                const int row = o.transposed ? r + e : r, column = o.transposed ? k : k + e;
                out[column * rows + row] = f32_of(element[e]);
            }
        }
}

static void read_registers(const Product &p, float *out) {
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < 4; i++) {
            const int row = t / 32 * 16 + t % 32 / 4 + i % 2 * 8, k = t % 4 * 2 + i / 2 * 8;
            out[k * M + row] = f32_of(p.a_registers[t][i] & 0xffff);
            out[(k + 1) * M + row] = f32_of(p.a_registers[t][i] >> 16);
        }
}

static void compute(const Product &p) {
    static float a[K * M], b[K * 256];
    Acting acting(p.at);
    if (p.a_in_registers) read_registers(p, a);
    else read_operand(p, p.a, M, a);
    const int n = p.d->n;
    read_operand(p, p.b, n, b);
    float *d = p.d->value.data();
    if (!p.accumulate) std::fill(d, d + M * n, 0.f);
    for (int k = 0; k < K; k++)
        for (int r = 0; r < M; r++) {
            const float x = a[k * M + r];
            for (int c = 0; c < n; c++) d[r * n + c] += x * b[k * n + c];
        }
    race::end_product(p.known);
}

void product_wait(unsigned pending) {
    meet("wgmma_wait", nullptr, CALLED_FROM, [pending](Group &g) {
        size_t done = 0;
        for (; done < g.products.size() && g.products[done].group + pending < g.open; done++) {
            compute(g.products[done]);
            Accumulator *d = g.products[done].d;
            if (--d->products == 0) give_back(g, d);
        }
        g.products.erase(g.products.begin(), g.products.begin() + done);
        if (g.products.empty()) g.fenced = false;
    });
}

} // namespace emu
