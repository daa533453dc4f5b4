// A task is a draw. The filters need no sorting: each is a least logit, and that of
// TopK and TopP is found by looking at ever lower digits of the logits' ordered keys.
#include "sampling.h"

#include <math.h>

#include "vector.h"

// A float's place in the order of all floats, and back.
static uint32_t key_of(float x) {
    uint32_t bits;
    x += 0.0f; // -0 becomes 0
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

static float float_of(uint32_t key) {
    uint32_t bits = key >> 31 ? key & 0x7fffffffu : ~key;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

enum { DIGITS = 1 << 11 };

// The largest logit such that the words with at least this logit have together at
// least `target` weight; the least of all where rounding keeps them below. weights null
// counts words. Words of no weight do not count.
static float least_kept(const float *x, const float *weights, int words, double target) {
    static const int shifts[] = {21, 10, 0};
    static const uint32_t masks[] = {0, 0xffe00000u, 0xfffffc00u}; // of the digits found so far
    double above = 0, sum[DIGITS];
    uint32_t found = 0;
    for (int level = 0; level < 3; level++) {
        memset(sum, 0, sizeof sum);
        for (int j = 0; j < words; j++) {
            uint32_t key = key_of(x[j]);
            if ((key & masks[level]) == found) sum[key >> shifts[level] & (DIGITS - 1)] += weights ? weights[j] : 1;
        }
        int digit = level == 2 ? (1 << 10) - 1 : DIGITS - 1;
        for (; digit > 0 && above + sum[digit] < target; digit--) above += sum[digit];
        found |= (uint32_t)digit << shifts[level];
    }
    return float_of(found);
}

VECTOR_INLINE float largest(const float *x, int n) {
    vec high = splat(-INFINITY);
    float top = -INFINITY;
    for (int j = 0; j + LANES <= n; j += LANES) high = maximum(load(x + j, LANES), high);
    for (int l = 0; l < LANES; l++) top = high[l] > top ? high[l] : top;
    for (int j = n / LANES * LANES; j < n; j++) top = x[j] > top ? x[j] : top;
    return top;
}

enum { BLOCK = 1024 }; // numbers summed in float, before double

// The logarithm of the sum of exp(x), NaN or infinite where x is not finite.
VECTOR_INLINE float log_sum(const float *x, int n) {
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

VECTOR_INLINE float sum_block(const float *w, int n) {
    vec added = {0};
    for (int j = 0; j < n; j += LANES) added += load(w + j, n - j);
    return sum(added);
}

VECTOR_INLINE double sum_all(const float *w, int n) {
    double total = 0;
    for (int j = 0; j < n; j += BLOCK) total += sum_block(w + j, n - j < BLOCK ? n - j : BLOCK);
    return total;
}

// Drops the words with a lower logit.
VECTOR_INLINE void drop_below(float *w, const float *x, int words, float least) {
    for (int j = 0; j < words; j += LANES)
        store(w + j, words - j, choose(load(x + j, words - j) >= splat(least), load(w + j, words - j), splat(0)));
}

// Sets the weights of the words, 0 for those that a filter drops.
VECTOR_INLINE void weigh(const struct draw *d, const float *x, float top, float *w, int words) {
    float temperature = d->temperature > 1e-30 ? d->temperature : 1e-30; // 0/0 would be no weight
    for (int j = 0; j < words; j += LANES)
        store(w + j, words - j, exp_vec((load(x + j, words - j) - splat(top)) / splat(temperature)));
    if (d->top_k > 0 && d->top_k < words) drop_below(w, x, words, least_kept(x, 0, words, d->top_k));
    if (d->top_p > 0 && d->top_p < 1) drop_below(w, x, words, least_kept(x, w, words, d->top_p * sum_all(w, words)));
    if (d->min_p > 0)
        for (int j = 0; j < words; j++) w[j] = w[j] < d->min_p ? 0 : w[j];
}

// The first word whose sum of weights up to it exceeds target; the last one with a
// weight where rounding keeps the sum below.
VECTOR_INLINE int word_at(const float *w, int words, double target) {
    double reached = 0;
    int found = -1, from = 0;
    for (; from + BLOCK < words; from += BLOCK) {
        float block = sum_block(w + from, BLOCK);
        if (reached + block > target) break;
        reached += block;
    }
    for (int j = from; j < words && j < from + BLOCK; j++) {
        if (w[j] == 0) continue;
        found = j;
        if ((reached += w[j]) > target) break;
    }
    if (found < 0)
        for (found = words - 1; w[found] == 0;) found--;
    return found;
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
        weigh(d, x, top, w, a->words);
        double kept = sum_all(w, a->words);
        d->token = word_at(w, a->words, d->uniform * kept);
        d->drawn = logf(w[d->token] / kept);
    }
    d->log_prob = x[d->token] - lse;
}

void sampling_run(struct cpu *cpu, struct sampling a) { parallel_for(cpu, draw_task, &a, a.draws); }
