// A parameter is cut into PARTS parts, whatever the number of threads, and the parts'
// sums are added in order. A part is summed in sixteen float64 lanes.
#include "gradnorm.h"

#include "vector.h"

enum { PARTS = 64 };

struct squares {
    const float *g;
    long n;
    double part[PARTS];
};

typedef double vec_double __attribute__((vector_size(128)));

CPU_CLONES
static void sum_part(void *arg, int task) {
    struct squares *a = arg;
    // Even whole vectors: only the last part may end in less than one.
    long size = (a->n + PARTS * LANES - 1) / (PARTS * LANES) * LANES;
    long from = task * size, to = from + size < a->n ? from + size : a->n;
    vec_double lanes = {0};
    for (long i = from; i < to; i += LANES) {
        vec_double x = __builtin_convertvector(load(a->g + i, to - i < LANES ? (int)(to - i) : LANES), vec_double);
        lanes += x * x;
    }
    double total = 0;
    for (int l = 0; l < LANES; l++) total += lanes[l];
    a->part[task] = total;
}

double gradnorm_squares(struct cpu *cpu, const float *g, long n) {
    struct squares a = {g, n};
    parallel_for(cpu, sum_part, &a, PARTS);
    double total = 0;
    for (int i = 0; i < PARTS; i++) total += a.part[i];
    return total;
}
