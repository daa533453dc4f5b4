// Elementwise work on [rows x heads], a task per BLOCK_ROWS rows. Sums over rows are
// kept per block and then added up in the order of the blocks. The compiler must not
// fuse products with sums: it would do so in one copy of a loop and not in another,
// and gradients would depend on which inputs are frozen.
#pragma GCC optimize("fp-contract=off")

#include "deltagate.h"
#include "vector.h"

static int min(int a, int b) { return a < b ? a : b; }

VECTOR_INLINE float *at(struct matrix x, int row, int col) { return x.data + row * x.stride + col; }

CPU_CLONES
static void forward_task(void *arg, int task) {
    const struct deltagate *a = arg;
    int from = task * BLOCK_ROWS, to = min(from + BLOCK_ROWS, a->rows);
    for (int h = 0; h < a->heads; h += LANES) {
        int left = a->heads - h;
        vec rate = -exp_vec(load(a->a_log.data + h, left)), bias = load(a->dt_bias.data + h, left);
        for (int t = from; t < to; t++) {
            store(at(a->g, t, h), left, rate * softplus(load(at(a->a, t, h), left) + bias));
            store(at(a->beta, t, h), left, sigmoid(load(at(a->b, t, h), left)));
        }
    }
}

CPU_CLONES
static void decay_backward_task(void *arg, int task) {
    const struct deltagate *a = arg;
    int from = task * BLOCK_ROWS, to = min(from + BLOCK_ROWS, a->rows);
    float *partial = a->partial + task * 2 * a->heads;
    for (int h = 0; h < a->heads; h += LANES) {
        int left = a->heads - h;
        vec rate = -exp_vec(load(a->a_log.data + h, left)), bias = load(a->dt_bias.data + h, left);
        vec ddt_bias = {0}, da_log = {0};
        for (int t = from; t < to; t++) {
            vec dg = load(at(a->dg, t, h), left);
            vec da = dg * rate * sigmoid(load(at(a->a, t, h), left) + bias);
            if (a->da.data) give(a->da, at(a->da, t, h), left, da);
            ddt_bias += da;
            da_log += dg * load(at(a->g, t, h), left);
        }
        store(partial + h, left, ddt_bias);
        store(partial + a->heads + h, left, da_log);
    }
}

CPU_CLONES
static void beta_backward_task(void *arg, int task) {
    const struct deltagate *a = arg;
    int from = task * BLOCK_ROWS, to = min(from + BLOCK_ROWS, a->rows);
    for (int t = from; t < to; t++)
        for (int h = 0; h < a->heads; h += LANES) {
            int left = a->heads - h;
            vec b = load(at(a->b, t, h), left); // 1 - beta would lose digits where beta is near 1
            give(a->db, at(a->db, t, h), left, load(at(a->dbeta, t, h), left) * sigmoid(b) * sigmoid(-b));
        }
}

static int blocks(const struct deltagate *a) { return (a->rows + BLOCK_ROWS - 1) / BLOCK_ROWS; }

// Adds the blocks' partial sums, which start at column `from`, to to[heads].
static void add_partials(const struct deltagate *a, int from, float *to) {
    for (int h = 0; h < a->heads; h++) {
        double total = 0;
        for (int i = 0; i < blocks(a); i++) total += a->partial[i * 2 * a->heads + from + h];
        to[h] += total;
    }
}

void deltagate_forward(struct cpu *cpu, struct deltagate a) { parallel_for(cpu, forward_task, &a, blocks(&a)); }

void deltagate_decay_backward(struct cpu *cpu, struct deltagate a) {
    parallel_for(cpu, decay_backward_task, &a, blocks(&a));
    if (a.ddt_bias.data) add_partials(&a, 0, a.ddt_bias.data);
    if (a.da_log.data) add_partials(&a, a.heads, a.da_log.data);
}

void deltagate_beta_backward(struct cpu *cpu, struct deltagate a) {
    parallel_for(cpu, beta_backward_task, &a, blocks(&a));
}
