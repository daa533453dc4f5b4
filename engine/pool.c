// The thread pool of the CPU device.
//
// One loop runs at a time. Its tasks are claimed from `left`, the number of tasks
// that nobody has taken yet: a thread that lowers it from r to r-1 owns a task of
// the current loop, and the loop cannot end, nor the next one begin, before that
// task is done. So there are no generations to compare, and a worker that wakes
// late finds nothing left and goes back to sleep. Threads without work spin for a
// moment, as the next operator is usually microseconds away, then sleep.
#include "gemm.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

struct pool {
    struct cpu cpu;  // first: a struct cpu * of this file points to a struct pool
    pthread_mutex_t busy;  // held by the caller whose loop is running
    cpu_task fn;
    void *arg;
    int tasks;
    atomic_int left;  // tasks not yet taken
    atomic_int done;  // tasks finished
    atomic_int asleep;  // workers that wait for `work`
    pthread_mutex_t lock;  // of the two conditions
    pthread_cond_t work, finished;
};

enum { SPINS = 10000 };  // half a millisecond: to wake a thread takes a tenth of that, and a step has hundreds of loops

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Takes and runs tasks until none is left.
static void help(struct pool *p) {
    int left = atomic_load(&p->left);
    while (left > 0) {
        if (!atomic_compare_exchange_weak(&p->left, &left, left - 1)) continue;
        int tasks = p->tasks;  // the next loop's, once this task is counted as done
        p->fn(p->arg, tasks - left);
        if (atomic_fetch_add(&p->done, 1) + 1 == tasks) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->finished);
            pthread_mutex_unlock(&p->lock);
        }
        left = atomic_load(&p->left);
    }
}

static void *worker(void *arg) {
    struct pool *p = arg;
    for (;;) {
        for (int i = 0; i < SPINS && atomic_load(&p->left) == 0; i++) relax();
        if (atomic_load(&p->left) == 0) {
            pthread_mutex_lock(&p->lock);
            atomic_fetch_add(&p->asleep, 1);
            while (atomic_load(&p->left) == 0) pthread_cond_wait(&p->work, &p->lock);
            atomic_fetch_sub(&p->asleep, 1);
            pthread_mutex_unlock(&p->lock);
        }
        help(p);
    }
    return 0;
}

static void run(struct cpu *cpu, cpu_task fn, void *arg, int tasks) {
    struct pool *p = (struct pool *)cpu;
    if (tasks <= 0) return;
    // Another goroutine has the pool: its loop keeps the cores busy anyway.
    if (pthread_mutex_trylock(&p->busy)) {
        for (int i = 0; i < tasks; i++) fn(arg, i);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    p->tasks = tasks;
    atomic_store(&p->done, 0);
    atomic_store(&p->left, tasks);
    if (atomic_load(&p->asleep) > 0) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->lock);
    }
    help(p);
    for (int i = 0; i < SPINS && atomic_load(&p->done) < tasks; i++) relax();
    if (atomic_load(&p->done) < tasks) {
        pthread_mutex_lock(&p->lock);
        while (atomic_load(&p->done) < tasks) pthread_cond_wait(&p->finished, &p->lock);
        pthread_mutex_unlock(&p->lock);
    }
    pthread_mutex_unlock(&p->busy);
}

// Returns a runtime of that many threads, the caller's included, whose gemm rounds the
// factors to bfloat16 or does not; 0 without memory. Where the system gives fewer threads, the work is done by those. A
// runtime lives as long as the process.
struct cpu *cpu_new(int threads, int bfloat16) {
    struct pool *p = calloc(1, sizeof *p);
    if (!p) return 0;
    p->cpu = (struct cpu){threads, run, bfloat16 ? gemm_bfloat16 : gemm_float32, gemm_serial};
    pthread_mutex_init(&p->busy, 0);
    pthread_mutex_init(&p->lock, 0);
    pthread_cond_init(&p->work, 0);
    pthread_cond_init(&p->finished, 0);
    // Signals are for the Go runtime's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 1; i < threads; i++) {
        pthread_t t;
        if (pthread_create(&t, 0, worker, p)) break;
        pthread_detach(t);
    }
    pthread_sigmask(SIG_SETMASK, &before, 0);
    return &p->cpu;
}
