#include "cpu.h"

#include <pthread.h>
#include <stdlib.h>

static void run_serial(struct cpu *cpu, cpu_task fn, void *arg, int tasks) {
    for (int i = 0; i < tasks; i++) fn(arg, i);
}

CPU_CLONES
static void gemm_serial(int ta, int tb, int m, int n, int k, const float *a, int lda,
                        const float *b, int ldb, float *c, int ldc, int accumulate) {
    for (int i = 0; i < m; i++) {
        float *row = c + (long)i * ldc;
        if (!accumulate)
            for (int j = 0; j < n; j++) row[j] = 0;
        for (int p = 0; p < k; p++) {
            float x = ta ? a[(long)p * lda + i] : a[(long)i * lda + p];
            if (tb)
                for (int j = 0; j < n; j++) row[j] += x * b[(long)j * ldb + p];
            else
                for (int j = 0; j < n; j++) row[j] += x * b[(long)p * ldb + j];
        }
    }
}

static void gemm(struct cpu *cpu, int ta, int tb, int m, int n, int k, const float *a, int lda,
                 const float *b, int ldb, float *c, int ldc, int accumulate) {
    gemm_serial(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, accumulate);
}

struct cpu *cpu_new(int threads) {
    struct cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu) return 0;
    cpu->threads = threads;
    cpu->run = run_serial;
    cpu->gemm = gemm;
    cpu->gemm_serial = gemm_serial;
    return cpu;
}
