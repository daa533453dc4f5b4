// Pairs are taken in blocks and the vocabulary in chunks, both of fixed size. A
// chunk of logits is one matrix product; the softmax's maximum and sum run along
// from chunk to chunk. The backward pass turns the logits into their gradients where
// they stand, if they were kept, and else forms them again: a product more, and no
// memory for them.
#include "logprob.h"

#include "vector.h"

enum { TASK_PAIRS = 8 };

static int min(int a, int b) { return a < b ? a : b; }

// A block of pairs [first, first + n) and a chunk of words [word, word + words).
struct block {
    const struct logprob *a;
    int first, n, word, words;
    float top[PAIRS], total[PAIRS], target[PAIRS];
};

// The block's logits, n x words.
static struct matrix logits(const struct block *b) {
    const struct logprob *a = b->a;
    if (!a->kept.data) return (struct matrix){a->logits, WORDS};
    return (struct matrix){a->kept.data + b->first * a->kept.stride + b->word, a->kept.stride};
}

static void compute_logits(struct cpu *cpu, const struct block *b) {
    const struct logprob *a = b->a;
    struct matrix z = logits(b);
    cpu->gemm(cpu, 0, 1, b->n, b->words, a->width, a->x, a->width, a->head.data + b->word * a->head.stride,
              a->head.stride, z.data, z.stride, 0);
}

// The target's place in the chunk, or -1.
static int target_in_chunk(const struct block *b, int i) {
    int at = b->a->targets[b->first + i] - b->word;
    return at >= 0 && at < b->words ? at : -1;
}

CPU_CLONES
static void soften_task(void *arg, int task) {
    struct block *b = arg;
    struct matrix all = logits(b);
    for (int i = task * TASK_PAIRS; i < min((task + 1) * TASK_PAIRS, b->n); i++) {
        const float *z = all.data + i * all.stride;
        vec high = splat(b->top[i]), added = {0};
        for (int j = 0; j < b->words; j += LANES) {
            vec x = load(z + j, b->words - j);
            if (b->words - j < LANES) // what load fills up must not win
                for (int l = b->words - j; l < LANES; l++) x[l] = -INFINITY;
            high = maximum(x, high);
        }
        float before = b->top[i], top = before;
        for (int l = 0; l < LANES; l++) top = high[l] > top ? high[l] : top;
        for (int j = 0; j < b->words; j += LANES) {
            vec p = exp_vec(load(z + j, b->words - j) - splat(top));
            if (b->words - j < LANES)
                for (int l = b->words - j; l < LANES; l++) p[l] = 0;
            added += p;
        }
        b->total[i] = b->total[i] * expf(before - top) + sum(added);
        b->top[i] = top;
        int target = target_in_chunk(b, i);
        if (target >= 0) b->target[i] = z[target];
    }
}

static int tasks(const struct block *b) { return (b->n + TASK_PAIRS - 1) / TASK_PAIRS; }

void logprob_forward(struct cpu *cpu, struct logprob a) {
    struct block b = {&a};
    for (b.first = 0; b.first < a.pairs; b.first += PAIRS) {
        b.n = min(PAIRS, a.pairs - b.first);
        for (int i = 0; i < b.n; i++) {
            b.top[i] = -INFINITY, b.total[i] = 0;
            memcpy(a.x + (long)i * a.width, a.hidden.data + a.rows[b.first + i] * a.hidden.stride, sizeof(float) * a.width);
        }
        for (b.word = 0; b.word < a.words; b.word += WORDS) {
            b.words = min(WORDS, a.words - b.word);
            compute_logits(cpu, &b);
            parallel_for(cpu, soften_task, &b, tasks(&b));
        }
        for (int i = 0; i < b.n; i++) {
            float lse = b.top[i] + logf(b.total[i]);
            a.lse.data[(b.first + i) * a.lse.stride] = lse;
            a.y.data[(b.first + i) * a.y.stride] = b.target[i] - lse;
        }
    }
}

// Turns the chunk's logits into their gradients.
CPU_CLONES
static void gradient_task(void *arg, int task) {
    const struct block *b = arg;
    const struct logprob *a = b->a;
    struct matrix all = logits(b);
    for (int i = task * TASK_PAIRS; i < min((task + 1) * TASK_PAIRS, b->n); i++) {
        float *z = all.data + i * all.stride;
        float dy = a->dy.data[(b->first + i) * a->dy.stride], lse = a->lse.data[(b->first + i) * a->lse.stride];
        if (dy == 0) {
            memset(z, 0, sizeof(float) * b->words);
            continue;
        }
        for (int j = 0; j < b->words; j += LANES)
            store(z + j, b->words - j, splat(-dy) * exp_vec(load(z + j, b->words - j) - splat(lse)));
        int target = target_in_chunk(b, i);
        if (target >= 0) z[target] += dy;
    }
}

void logprob_backward(struct cpu *cpu, struct logprob a) {
    struct block b = {&a};
    for (b.first = 0; b.first < a.pairs; b.first += PAIRS) {
        b.n = min(PAIRS, a.pairs - b.first);
        for (int i = 0; i < b.n; i++) { // a row without gradient may hold anything: zeros stand for it
            float *x = a.x + (long)i * a.width;
            if (a.dy.data[(b.first + i) * a.dy.stride] == 0)
                memset(x, 0, sizeof(float) * a.width);
            else
                memcpy(x, a.hidden.data + a.rows[b.first + i] * a.hidden.stride, sizeof(float) * a.width);
        }
        for (b.word = 0; b.word < a.words; b.word += WORDS) {
            b.words = min(WORDS, a.words - b.word);
            if (!a.kept.data) compute_logits(cpu, &b);
            parallel_for(cpu, gradient_task, &b, tasks(&b));
            struct matrix z = logits(&b);
            const float *head = a.head.data + b.word * a.head.stride;
            if (a.dhidden.data)
                cpu->gemm(cpu, 0, 0, b.n, a.width, b.words, z.data, z.stride, head, a.head.stride, a.dx, a.width, b.word > 0);
            if (a.dhead.data)
                cpu->gemm(cpu, 1, 0, b.words, a.width, b.n, z.data, z.stride, a.x, a.width,
                          a.dhead.data + b.word * a.dhead.stride, a.dhead.stride, 1);
        }
        for (int i = 0; a.dhidden.data && i < b.n; i++) { // rows may repeat: one after the other
            float *to = a.dhidden.data + a.rows[b.first + i] * a.dhidden.stride;
            for (int c = 0; c < a.width; c++) to[c] += a.dx[(long)i * a.width + c];
        }
    }
}
