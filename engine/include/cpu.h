// The C side of the CPU device. An operator's C code takes a `struct cpu *` and
// calls through it, so that operators in other packages need no symbol of this
// one at link time.
#ifndef CAPER_CPU_H
#define CAPER_CPU_H

#include <stdint.h>

// Lets the compiler vectorise sqrtf and comparisons; results do not change (errno
// and floating-point traps are never looked at).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno", "no-trapping-math")
#endif

struct cpu;

// A task of a parallel loop. What a task computes must depend on its number and
// never on the thread that runs it: that keeps results identical for any number
// of threads.
typedef void (*cpu_task)(void *arg, int task);

struct cpu {
    int threads;
    // Runs fn(arg, 0) .. fn(arg, tasks-1) on the pool and returns when all are done.
    // While a loop is running, another one (from another goroutine or from within a
    // task) is run on its caller's thread alone.
    void (*run)(struct cpu *, cpu_task fn, void *arg, int tasks);
    // C = op(A) op(B) (+ C when accumulate), row-major; op(A) is m x k, op(B) is
    // k x n; ta, tb: 1 when the matrix is stored transposed. lda, ldb, ldc are row
    // strides as stored. The value of a row of C does not depend on m.
    void (*gemm)(struct cpu *, int ta, int tb, int m, int n, int k, const float *a, int lda,
                 const float *b, int ldb, float *c, int ldc, int accumulate);
    // The same on the calling thread alone, for use inside a task.
    void (*gemm_serial)(int ta, int tb, int m, int n, int k, const float *a, int lda,
                        const float *b, int ldb, float *c, int ldc, int accumulate);
};

// Floats below 2^-126, which strong decays and their gradients give, cost the processor
// a hundred times as much as others; tasks take them for 0. The calling thread is Go's,
// so what it had is put back.
#if defined(__x86_64__)
static inline unsigned take_tiny_for_zero(void) {
    unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040); // results, and operands
    return before;
}
static inline void put_back(unsigned before) { __builtin_ia32_ldmxcsr(before); }
#else
static inline unsigned take_tiny_for_zero(void) { return 0; }
static inline void put_back(unsigned before) { (void)before; }
#endif

struct parallel_loop {
    cpu_task fn;
    void *arg;
};

static inline void parallel_task(void *arg, int task) {
    struct parallel_loop *loop = arg;
    unsigned before = take_tiny_for_zero();
    loop->fn(loop->arg, task);
    put_back(before);
}

static inline void parallel_for(struct cpu *cpu, cpu_task fn, void *arg, int tasks) {
    struct parallel_loop loop = {fn, arg};
    if (tasks == 1 || cpu->threads == 1) {
        for (int i = 0; i < tasks; i++) parallel_task(&loop, i);
        return;
    }
    cpu->run(cpu, parallel_task, &loop, tasks);
}

// The elements of a tensor: row r starts at data + r*stride. A null pointer stands
// for a gradient that nobody wants. A fresh one holds nothing yet: what would be added
// to it is stored instead.
struct matrix {
    float *data;
    long stride;
    int fresh;
};

// An operator that goes row by row gives each task ROW_BLOCK rows: task i has rows
// [i*ROW_BLOCK, row_end(rows, i)). The gradient of a weight that all rows share is
// summed over the rows of each block, then over the blocks in order.
enum { ROW_BLOCK = 32 };
static inline int row_blocks(int rows) { return (rows + ROW_BLOCK - 1) / ROW_BLOCK; }
static inline int row_end(int rows, int task) {
    int end = (task + 1) * ROW_BLOCK;
    return end < rows ? end : rows;
}

// Compiles a function for several instruction sets; the best one the machine has
// is chosen when the program starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CPU_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CPU_CLONES
#endif

#endif
