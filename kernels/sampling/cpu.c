// A task is a draw. The filters need no sorting: each is a least logit, and that of
// TopK and TopP is found by looking at ever lower digits of the logits' ordered keys.
#include "sampling.h"

#include <math.h>

#include "vector.h"

// A float's place in the order of all floats.
static uint32_t key_of(float x) {
    uint32_t bits;
    x += 0.0f; // -0 becomes 0
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

enum { DIGITS = 1 << 11 };

// The largest key such that the words with at least this key have together at least
// `target` weight, among words with at least the key `least`; where all of them have
// less, `least`. weights null counts words.
static uint32_t select_key(const float *x, const float *weights, int words, uint32_t least, double target) {
    static const int shifts[] = {21, 10, 0};
    static const uint32_t masks[] = {0, 0xffe00000u, 0xfffffc00u}; // of the digits found so far
    double above = 0, sum[DIGITS];
    uint32_t found = 0;
    for (int level = 0; level < 3; level++) {
        memset(sum, 0, sizeof sum);
        for (int j = 0; j < words; j++) {
            uint32_t key = key_of(x[j]);
            if (key >= least && (key & masks[level]) == found) sum[key >> shifts[level] & (DIGITS - 1)] += weights ? weights[j] : 1;
        }
        int digit = level == 2 ? (1 << 10) - 1 : DIGITS - 1;
        for (; digit > 0 && above + sum[digit] < target; digit--) above += sum[digit];
        found |= (uint32_t)digit << shifts[level];
    }
    return found > least ? found : least;
}

VECTOR_INLINE float largest(const float *x, int n) {
    vec high = splat(-INFINITY);
    float top = -INFINITY;
    for (int j = 0; j + LANES <= n; j += LANES) high = maximum(load(x + j, LANES), high);
    for (int l = 0; l < LANES; l++) top = high[l] > top ? high[l] : top;
    for (int j = n / LANES * LANES; j < n; j++) top = x[j] > top ? x[j] : top;
    return top;
}

// The logarithm of the sum of exp(x), NaN or infinite where x is not finite.
VECTOR_INLINE float log_sum(const float *x, int n) {
    enum { BLOCK = 4096 }; // summed in float
    float top = largest(x, n);
    double total = 0;
    for (int from = 0; from < n; from += BLOCK) {
        int to = n - from < BLOCK ? n : from + BLOCK, whole = from + (to - from) / LANES * LANES;
        vec added = {0};
        for (int j = from; j < whole; j += LANES) added += exp_vec(load(x + j, LANES) - splat(top));
        total += sum(added);
        for (int j = whole; j < to; j++) total += expf(x[j] - top);
    }
    return top + (float)log(total);
}

// Sets the weights of the words, 0 for those that a filter drops, and returns their
// sum.
VECTOR_INLINE double weigh(const struct draw *d, const float *x, float top, float *w, int words) {
    float temperature = d->temperature > 1e-30 ? d->temperature : 1e-30; // 0/0 would be no weight
    for (int j = 0; j < words; j += LANES) {
        vec e = exp_vec((load(x + j, words - j) - splat(top)) / splat(temperature));
        store(w + j, words - j, e);
    }
    uint32_t least = 0;
    if (d->top_k > 0 && d->top_k < words) least = select_key(x, 0, words, least, d->top_k);
    if (d->top_p > 0 && d->top_p < 1) {
        double kept = 0;
        for (int j = 0; j < words; j++) kept += key_of(x[j]) >= least ? w[j] : 0;
        least = select_key(x, w, words, least, d->top_p * kept);
    }
    double kept = 0;
    for (int j = 0; j < words; j++) {
        if (key_of(x[j]) < least || w[j] < d->min_p) w[j] = 0;
        kept += w[j];
    }
    return kept;
}

CPU_CLONES
static void draw_task(void *arg, int task) {
    const struct sampling *a = arg;
    struct draw *d = a->draw + task;
    const float *x = a->logits.data + d->row * a->logits.stride;
    float *w = a->weights + (long)task * a->words, lse = log_sum(x, a->width);
    d->token = -1, d->log_prob = d->drawn = 0;
    float top = largest(x, a->words);
    if (!isfinite(lse) || !isfinite(top)) return;
    if (d->temperature == 0) {
        d->token = 0;
        while (x[d->token] != top) d->token++;
    } else {
        double kept = weigh(d, x, top, w, a->words), reached = 0;
        for (int j = 0; j < a->words; j++) {
            if (w[j] == 0) continue;
            d->token = j; // the last one, if rounding keeps the sum below
            if ((reached += w[j]) > d->uniform * kept) break;
        }
        d->drawn = logf(w[d->token] / kept);
    }
    d->log_prob = x[d->token] - lse;
}

void sampling_run(struct cpu *cpu, struct sampling a) { parallel_for(cpu, draw_task, &a, a.draws); }
