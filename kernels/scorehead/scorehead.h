#ifndef CAPER_SCOREHEAD_H
#define CAPER_SCOREHEAD_H

#include "cpu.h"

// The arguments of both directions: scores [count x labels] of the given rows of
// hidden [. x cols]; dhidden and dw may be null.
struct scorehead {
    int count, labels, cols;
    const int32_t *rows;
    struct matrix hidden, w, y, dy, dhidden, dw;
};

void scorehead_forward(struct cpu *, struct scorehead);
void scorehead_backward(struct cpu *, struct scorehead);

#endif
