// The matrix product behind the function pointers of struct cpu.
#ifndef CAPER_GEMM_H
#define CAPER_GEMM_H

#include "cpu.h"

void gemm(struct cpu *cpu, int ta, int tb, int m, int n, int k, const float *a, int lda,
          const float *b, int ldb, float *c, int ldc, int accumulate);
void gemm_serial(int ta, int tb, int m, int n, int k, const float *a, int lda, const float *b,
                 int ldb, float *c, int ldc, int accumulate);

#endif
