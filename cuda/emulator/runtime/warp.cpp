// What the lanes of a warp do together: the last to come does it for all.
#include <string.h>

#include "check.h"
#include "fault.h"
#include "kernel.h"
#include "race.h"
#include "shared.h"

namespace emu {

constexpr uint32_t ALL_LANES = 0xffffffffu;

// Lanes that wait for the rest of their mask. Each lane's argument lies on its stack.
struct Meeting {
    const char *primitive;
    const void *at;
    uint32_t mask, arrived;
    void *argument[32];
};

// By warp. Meetings of one warp have masks without a lane in common.
static std::vector<Meeting> meetings[32];

void reset_warps() {
    for (auto &m : meetings) m.clear();
}

static Thread &lane_of(unsigned warp, unsigned lane) { return block.threads[warp * 32 + lane]; }

static void check_mask(const char *primitive, uint32_t mask, const void *at) {
    if (!(mask >> self->lane() & 1)) fail(at, "wrong mask: lane %u is not in its own mask %#x of %s", self->lane(), mask, primitive);
    const uint32_t missing = mask & ~block.lanes[self->warp()];
    if (!missing) return;
    const unsigned lane = __builtin_ctz(missing);
    if (self->warp() * 32 + lane >= block.size) fail(at, "wrong mask: %s names lane %u, and the warp has none", primitive, lane);
    fail(at, "wrong mask: %s names lane %u, which has exited", primitive, lane);
}

static Meeting &meeting_of(const char *primitive, uint32_t mask, const void *at) {
    auto &open = meetings[self->warp()];
    for (Meeting &m : open) {
        if (!(m.mask & mask)) continue;
        if (m.primitive != primitive || !same_place(m.at, at)) fail(at, "divergent warp: %s, while other lanes are in %s at @%p", primitive, m.primitive, m.at);
        if (m.mask != mask) fail(at, "wrong mask: %#x in %s, while other lanes give %#x", mask, primitive, m.mask);
        return m;
    }
    open.push_back({primitive, at, mask, 0, {}});
    return open.back();
}

// Waits until all lanes of the mask are here; together(meeting) runs once, with all
// lanes' arguments.
template <class Together> static void meet(const char *primitive, uint32_t mask, void *argument, const void *at, Together together) {
    check_mask(primitive, mask, at);
    Meeting &m = meeting_of(primitive, mask, at);
    m.argument[self->lane()] = argument;
    m.arrived |= 1u << self->lane();
    if (m.arrived != mask) {
        wait(primitive, at);
        return;
    }
    together(m);
    for (unsigned lane = 0; lane < 32; lane++)
        if (mask >> lane & 1 && lane != self->lane()) wake(&lane_of(self->warp(), lane));
    auto &open = meetings[self->warp()];
    open.erase(open.begin() + (&m - open.data()));
}

void sync_warp(uint32_t mask) {
    meet("__syncwarp", mask, nullptr, CALLED_FROM, [mask](Meeting &) {
        race::Clock clock;
        Thread *last = self;
        for (unsigned lane = 0; lane < 32; lane++)
            if (mask >> lane & 1) self = &lane_of(last->warp(), lane), race::release(clock);
        self = last;
        for (unsigned lane = 0; lane < 32; lane++)
            if (mask >> lane & 1) race::acquire(&lane_of(last->warp(), lane), clock);
    });
}

// ---- Shuffles and votes

// The lane whose value this one gets (CUDA C++ Programming Guide, "Warp shuffle functions").
static unsigned source_lane(Shuffle kind, unsigned lane, unsigned operand, unsigned width) {
    const unsigned begin = lane / width * width, end = begin + width;
    unsigned source = lane;
    switch (kind) {
    case Shuffle::index: return begin + operand % width;
    case Shuffle::up: source = lane - operand; return operand <= lane && source >= begin ? source : lane;
    case Shuffle::down: source = lane + operand; break;
    case Shuffle::exclusive_or: source = lane ^ operand; break;
    }
    return source < end ? source : lane;
}

uint64_t shuffle(Shuffle kind, uint32_t mask, uint64_t value, unsigned operand, unsigned width) {
    static const char *const names[] = {"__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync"};
    const char *name = names[(int)kind];
    const void *at = CALLED_FROM;
    if (!width || width > 32 || width & (width - 1)) fail(at, "%s: width %u is no power of two up to 32", name, width);
    const unsigned source = source_lane(kind, self->lane(), operand, width);
    if (!(mask >> source & 1)) fail(at, "wrong mask: %s reads lane %u, which is not in the mask %#x", name, source, mask);
    struct Lane { uint64_t value, result; unsigned source; } lane = {value, 0, source};
    meet(name, mask, &lane, at, [](Meeting &m) {
        for (unsigned l = 0; l < 32; l++)
            if (Lane *to = (Lane *)m.argument[l]) to->result = ((Lane *)m.argument[to->source])->value;
    });
    return lane.result;
}

uint32_t ballot(uint32_t mask, int predicate) {
    uint32_t lane = predicate != 0;
    meet("a vote", mask, &lane, CALLED_FROM, [](Meeting &m) {
        uint32_t all = 0;
        for (unsigned l = 0; l < 32; l++)
            if (m.argument[l]) all |= *(uint32_t *)m.argument[l] << l;
        for (void *to : m.argument)
            if (to) *(uint32_t *)to = all;
    });
    return lane;
}

// ---- Matrix fragments

void ldmatrix(uint32_t *matrix, const void *row, int count, bool transpose) {
    struct Lane { uint32_t *matrix; const void *row; int count; bool transpose; const void *at; } lane = {matrix, row, count, transpose, CALLED_FROM};
    if (self->lane() < 8u * count) check_shared(lane.at, "ldmatrix", row, 16, 16);
    meet("ldmatrix", ALL_LANES, &lane, lane.at, [](Meeting &m) {
        const Lane &first = *(Lane *)m.argument[0];
        for (int i = 0; i < first.count; i++) {
            uint16_t element[8][8];
            for (int r = 0; r < 8; r++) {
                const Lane &named = *(Lane *)m.argument[8 * i + r];
                race::read(&lane_of(self->warp(), 8 * i + r), named.row, 16, named.at);
                memcpy(element[r], named.row, 16);
            }
            for (unsigned l = 0; l < 32; l++) {
                const unsigned r = l / 4, c = l % 4 * 2;
                const uint32_t low = first.transpose ? element[c][r] : element[r][c];
                const uint32_t high = first.transpose ? element[c + 1][r] : element[r][c + 1];
                ((Lane *)m.argument[l])->matrix[i] = high << 16 | low;
            }
        }
    });
}

static float low(uint32_t pair) { pair <<= 16; float f; memcpy(&f, &pair, 4); return f; }
static float high(uint32_t pair) { pair &= 0xffff0000u; float f; memcpy(&f, &pair, 4); return f; }

void mma(float *d, const uint32_t *a, uint32_t b0, uint32_t b1) {
    struct Lane { float *d; const uint32_t *a; uint32_t b[2]; } lane = {d, a, {b0, b1}};
    meet("mma", ALL_LANES, &lane, CALLED_FROM, [](Meeting &m) {
        float A[16][16], B[16][8], D[16][8];
        for (unsigned l = 0; l < 32; l++) {
            const Lane &from = *(Lane *)m.argument[l];
            const unsigned g = l / 4, t = l % 4 * 2;
            for (int i = 0; i < 4; i++) {
                A[g + i % 2 * 8][t + i / 2 * 8] = low(from.a[i]);
                A[g + i % 2 * 8][t + i / 2 * 8 + 1] = high(from.a[i]);
                D[g + i / 2 * 8][t + i % 2] = from.d[i];
            }
            for (int i = 0; i < 2; i++) {
                B[t + 8 * i][g] = low(from.b[i]);
                B[t + 8 * i + 1][g] = high(from.b[i]);
            }
        }
        for (int k = 0; k < 16; k++)
            for (int r = 0; r < 16; r++)
                for (int c = 0; c < 8; c++) D[r][c] += A[r][k] * B[k][c];
        for (unsigned l = 0; l < 32; l++) {
            float *to = ((Lane *)m.argument[l])->d;
            for (int i = 0; i < 4; i++) to[i] = D[l / 4 + i / 2 * 8][l % 4 * 2 + i % 2];
        }
    });
}

} // namespace emu
