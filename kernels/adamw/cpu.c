// Every element on its own, BLOCK elements a task. Decay and step are taken off the
// weight together: 1 - LR lambda, the usual factor, has too few digits in float32.
#include "adamw.h"

#include "vector.h"

enum { BLOCK = 1 << 14 };

CPU_CLONES
static void update_block(void *arg, int task) {
    const struct adamw *a = arg;
    const long from = (long)task * BLOCK, n = a->n - from < BLOCK ? a->n - from : BLOCK;
    const vec rest1 = splat(a->rest1), rest2 = splat(a->rest2), eps = splat(a->eps), scale = splat(a->scale);
    const vec step = splat(a->step), correct = splat(a->correct), decay = splat(a->decay);
    float *p = a->p + from, *m = a->m + from, *v = a->v + from;
    const float *g = a->g + from;
    for (int i = 0; i < n; i += LANES) {
        int left = n - i;
        vec gi = scale * load(g + i, left), mi = load(m + i, left), vi = load(v + i, left);
        vec pi = load(p + i, left);
        mi += rest1 * (gi - mi);
        vi += rest2 * (gi * gi - vi);
        store(m + i, left, mi);
        store(v + i, left, vi);
        store(p + i, left, pi - (decay * pi + step * mi / (square_root(vi) * correct + eps)));
    }
}

void adamw_step(struct cpu *cpu, struct adamw a) {
    parallel_for(cpu, update_block, &a, (a.n + BLOCK - 1) / BLOCK);
}
