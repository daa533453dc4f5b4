// Every element on its own, BLOCK elements a task. Decay and step are taken off the
// weight together: 1 - LR lambda, the usual factor, has too few digits in float32.
#include "adamw.h"

#include "vector.h"

enum { BLOCK = 1 << 14 };

VECTOR_INLINE vec square_root(vec x) {
    float s[LANES];
    memcpy(s, &x, sizeof s);
    for (int i = 0; i < LANES; i++) s[i] = sqrtf(s[i]);
    return load(s, LANES);
}

CPU_CLONES
static void update_block(void *arg, int task) {
    const struct adamw *a = arg;
    long from = (long)task * BLOCK, n = a->n - from < BLOCK ? a->n - from : BLOCK;
    float *p = a->p + from, *m = a->m + from, *v = a->v + from;
    const float *g = a->g + from;
    for (int i = 0; i < n; i += LANES) {
        int left = n - i;
        vec gi = splat(a->scale) * load(g + i, left), mi = load(m + i, left), vi = load(v + i, left);
        vec pi = load(p + i, left);
        mi += splat(a->rest1) * (gi - mi);
        vi += splat(a->rest2) * (gi * gi - vi);
        store(m + i, left, mi);
        store(v + i, left, vi);
        vec step = splat(a->step) * mi / (square_root(vi) * splat(a->correct) + splat(a->eps));
        store(p + i, left, pi - (splat(a->decay) * pi + step));
    }
}

void adamw_step(struct cpu *cpu, struct adamw a) {
    parallel_for(cpu, update_block, &a, (a.n + BLOCK - 1) / BLOCK);
}
