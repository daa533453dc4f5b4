#ifndef CAPER_GRADNORM_H
#define CAPER_GRADNORM_H

#include "cpu.h"

// The sum of the squares of g[0..n).
double gradnorm_squares(struct cpu *, const float *g, long n);

#endif
