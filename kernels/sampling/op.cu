// Drawing tokens from rows of logits in float32 or bf16 (rule: op.go, formulas: spec.go). A
// block answers one draw. Weights are summed as whole numbers of 2^-44, which have no order:
// results are exact, whatever the block's size. The filters need no sorting: each is a least
// logit, and that of TopK and TopP is found by looking at ever lower digits of the logits'
// ordered keys.
#include "dialect.cuh"

// Draw of op.go.
struct Draw {
    double temperature, top_p, min_p, uniform;
    int row, top_k, token;
    float log_prob, drawn;
    int unused;
};

static constexpr int DIGITS = 1 << 11;
static constexpr float UNIT = 1ull << 44;

DEVICE float infinity() { return __uint_as_float(0x7f800000); }
DEVICE float to_f32(float x) { return x; }

// A float's place in the order of all floats, and back.
DEVICE u32 key_of(float x) {
    const u32 bits = __float_as_uint(x + 0.f); // -0 becomes 0
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

DEVICE float float_of(u32 key) { return __uint_as_float(key >> 31 ? key & 0x7fffffffu : ~key); }

// Memory that the block shares. Digits' sums are in two halves: shared memory has atomic
// addition of 32 bits.
struct Shared {
    u64 part[32];
    float scratch[32];
    u32 low[DIGITS], high[DIGITS];
};

DEVICE u64 warp_total(u64 v) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(ALL_LANES, v, o);
    return v;
}

DEVICE float block_max(float v, Shared& s) {
    v = warp_max(v);
    if (lane_id() == 0) s.scratch[warp_id()] = v;
    __syncthreads();
    v = warp_max(lane_id() < blockDim.x / 32 ? s.scratch[lane_id()] : -infinity());
    __syncthreads();
    return v;
}

// A place in a sequence of numbers, with the sums in front of it and of all.
struct Found {
    int at;
    u64 before, total;
};

// The first place below n at which the sum of value(0), value(1), ... exceeds target(total). All
// threads call it: a piece a warp, and then the piece it is in again, until that is one number.
template <class Value, class Target> DEVICE Found first_beyond(int n, Value value, Target target, Shared& s) {
    const int warps = blockDim.x / 32;
    Found f = {0, 0, 0};
    u64 beyond = 0;
    int piece = n, end = n;
    for (bool whole = true; whole || piece > 1; whole = false) {
        piece = (end - f.at + warps - 1) / warps;
        const int from = f.at + (int)warp_id() * piece, to = min(from + piece, end);
        u64 sum = 0;
        for (int i = from + (int)lane_id(); i < to; i += 32) sum += value(i);
        sum = warp_total(sum);
        if (lane_id() == 0) s.part[warp_id()] = sum;
        __syncthreads();
        if (whole) {
            for (int w = 0; w < warps; w++) f.total += s.part[w];
            beyond = target(f.total);
        }
        int w = 0;
        while (w < warps - 1 && f.before + s.part[w] <= beyond) f.before += s.part[w++];
        __syncthreads();
        f.at += w * piece;
        end = min(f.at + piece, end);
    }
    return f;
}

// The largest logit such that the words with at least this logit have together at least
// target(total) weight.
template <class Logit, class Weight, class Target> DEVICE float least_kept(int words, Logit logit, Weight weight, Target target, Shared& s) {
    u32 found = 0, mask = 0;
    u64 missing = 0; // what the words of this and lower digits must have beyond
    for (int level = 0; level < 3; level++) {
        const int shift = level == 0 ? 21 : level == 1 ? 10 : 0, digits = level == 2 ? DIGITS / 2 : DIGITS;
        for (int d = threadIdx.x; d < DIGITS; d += blockDim.x) s.low[d] = s.high[d] = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < words; i += blockDim.x) {
            const u32 key = key_of(logit(i));
            const u64 w = (key & mask) == found ? weight(i) : 0;
            if (w == 0) continue;
            const u32 digit = key >> shift & (digits - 1), old = atomicAdd(&s.low[digit], (u32)w);
            const u32 carried = (u32)(w >> 32) + (old + (u32)w < old);
            if (carried) atomicAdd(&s.high[digit], carried);
        }
        __syncthreads();
        const Found f = first_beyond(
            digits, [&](int i) { return (u64)s.high[digits - 1 - i] << 32 | s.low[digits - 1 - i]; },
            [&](u64 total) { return level == 0 ? target(total) - 1 : missing; }, s);
        missing = (level == 0 ? target(f.total) - 1 : missing) - f.before;
        found |= (u32)(digits - 1 - f.at) << shift;
        mask |= (u32)(digits - 1) << shift;
    }
    return float_of(found);
}

template <class Element> DEVICE void answer(const Element* logits, i64 stride, int width, int words, const Draw* draws, Draw* answers) {
    DYN_SHARED(Shared, shared);
    Shared& s = *shared;
    Draw d = draws[blockIdx.x];
    const Element* row = logits + d.row * stride;
    const auto logit = [=](int i) { return to_f32(row[i]); };

    float highest = -infinity(), top = -infinity(), sum[1] = {0};
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        highest = fmaxf(highest, logit(i));
        if (i < words) top = fmaxf(top, logit(i));
    }
    highest = block_max(highest, s);
    top = block_max(top, s);
    for (int i = threadIdx.x; i < width; i += blockDim.x) sum[0] += expf(logit(i) - highest); // NaN if any logit is
    block_sum(sum, s.scratch);
    const float log_sum = highest + logf(sum[0]);

    Found word = {-1, 0, 0};
    float drawn = 0;
    if (!(fabsf(log_sum) < infinity() && fabsf(top) < infinity())) {
        // no token
    } else if (d.temperature == 0) {
        word = first_beyond(words, [=](int i) { return (u64)(logit(i) == top); }, [](u64) { return (u64)0; }, s);
    } else {
        const float temperature = fmaxf((float)d.temperature, 1e-30f); // 0/0 would be no weight
        float least = -infinity();
        const auto weight = [=](int i) { return expf((logit(i) - top) / temperature); };
        const auto kept = [&](int i) { return logit(i) >= least ? (u64)(weight(i) * UNIT) : 0; };
        if (d.top_k > 0 && d.top_k < words)
            least = least_kept(words, logit, [](int) { return (u64)1; }, [&](u64) { return (u64)d.top_k; }, s);
        if (d.top_p > 0 && d.top_p < 1)
            least = least_kept(words, logit, kept, [&](u64 total) { return max((u64)ceil(d.top_p * total), (u64)1); }, s);
        word = first_beyond(words, [&](int i) { return weight(i) >= d.min_p ? kept(i) : 0; },
                            [&](u64 total) { return min((u64)(d.uniform * total), total - 1); }, s);
        drawn = logf((float)(weight(word.at) * (double)UNIT / word.total));
    }
    if (threadIdx.x != 0) return;
    d.token = word.at;
    d.log_prob = word.at >= 0 ? logit(word.at) - log_sum : 0;
    d.drawn = drawn;
    answers[blockIdx.x] = d;
}

// answers = draws with their answers, one a block, from logits [rows, width], of which the
// first `words` columns may be drawn. Dynamic shared memory: sizeof(Shared).
extern "C" __global__ void __launch_bounds__(1024) sampling_float32(const float* logits, i64 stride, int width, int words, const Draw* draws, Draw* answers) {
    answer(logits, stride, width, words, draws, answers);
}

extern "C" __global__ void __launch_bounds__(1024) sampling_bf16(const bf16* logits, i64 stride, int width, int words, const Draw* draws, Draw* answers) {
    answer(logits, stride, width, words, draws, answers);
}
