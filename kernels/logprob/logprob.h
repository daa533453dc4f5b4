#ifndef CAPER_LOGPROB_H
#define CAPER_LOGPROB_H

#include "cpu.h"

// Logits are formed for PAIRS pairs and WORDS words of the vocabulary at a time.
enum { PAIRS = 1024, WORDS = 2048 };

// The arguments of both directions; dhidden and dhead may be null. All logits are kept
// in `kept`, pairs x words, or, where that is null, those at work in logits, PAIRS x
// WORDS floats. x and dx hold PAIRS x width, the rows of a block of pairs.
struct logprob {
    int pairs, words, width;
    const int32_t *rows, *targets;
    struct matrix hidden, head, y, lse, kept, dy, dhidden, dhead;
    float *logits, *x, *dx;
};

void logprob_forward(struct cpu *, struct logprob);
void logprob_backward(struct cpu *, struct logprob);

#endif
