// The matrix product behind the function pointers of struct cpu: gemm.c walks over
// blocks of C, a struct kernel multiplies them.
#ifndef CAPER_GEMM_H
#define CAPER_GEMM_H

#include "cpu.h"

// What one instruction set brings. Blocks of A and B are copied ("packed") into panels
// that a tile of C reads front to back. A panel of A holds `rows` rows of op(A); one of
// B holds `cols` columns of op(B), unit after unit of 4 bytes: a float32 for each step
// of k, or two bfloat16 for two steps.
struct kernel {
    const char *name;
    int rows, cols;            // of a tile of C
    int pair;                  // steps of k in a unit: 1, or 2
    int multiple;              // zeros fill a block of k up to a multiple of this
    int steps;                 // of k in a block, at most
    int a_panels, b_panels;    // in a block of A, and of B
    int a_panel;               // units from one panel of A to the next
    // Copies `lines` rows of op(A), stored as rows of x or as columns of it.
    void (*pack_rows)(float *panels, const float *x, long line, int lines, int steps);
    void (*pack_columns)(float *panels, const float *x, long line, int lines, int steps);
    // Copies `lines` columns of op(B), stored as columns of x or as rows of it.
    void (*copy)(float *panels, const float *x, long line, int lines, int steps);
    void (*transpose)(float *panels, const float *x, long line, int lines, int steps);
    // C = or += a tile, from panels of A that pack_rows or pack_columns wrote. A unit of
    // B is ldb floats after the one before it.
    void (*by_row)(int rows, int units, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add);
    void (*by_column)(int rows, int units, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add);
    // For few rows of A, optional: `in_place` says that by_row and by_column may read B
    // where it is stored; `few` reads 16 columns of B from 16 rows of a matrix.
    int in_place;
    void (*few)(int rows, int steps, const float *a, const float *b, long ldb, float *c, long ldc, int cols, int add);
    // For an A stored as columns and a B stored as rows, optional: a tile from both where
    // they are stored, all of cols read even where fewer are written.
    void (*as_stored)(int rows, int steps, const float *a, long lda, const float *b, long ldb, float *c, long ldc, int cols, int add);
    void (*round)(float *x, long n);  // optional: packed elements go through it
    void (*enter)(void), (*leave)(void);  // optional: around the use of a thread's tiles
};

// The kernels that this machine can run, best first, ending with a null pointer.
const struct kernel *const *float32_kernels(void);
const struct kernel *const *bfloat16_kernels(void);

// The first kernel of a list, or that of the given name, or 0.
const struct kernel *gemm_kernel(int bfloat16, const char *name);

// The functions of struct cpu.
void gemm_float32(struct cpu *cpu, int ta, int tb, int m, int n, int k, const float *a, int lda,
                  const float *b, int ldb, float *c, int ldc, int accumulate);
void gemm_bfloat16(struct cpu *cpu, int ta, int tb, int m, int n, int k, const float *a, int lda,
                   const float *b, int ldb, float *c, int ldc, int accumulate);
void gemm_serial(int ta, int tb, int m, int n, int k, const float *a, int lda, const float *b,
                 int ldb, float *c, int ldc, int accumulate);

#endif
