#ifndef CAPER_SAMPLING_H
#define CAPER_SAMPLING_H

#include "cpu.h"

// Draw of op.go.
struct draw {
    double temperature, top_p, min_p, uniform;
    int32_t row, top_k, token;
    float log_prob, drawn;
    int32_t unused;
};

// logits is [rows, width], weights [draws, words].
struct sampling {
    int draws, width, words;
    struct matrix logits;
    float *weights;
    struct draw *draw;
};

void sampling_run(struct cpu *, struct sampling);

#endif
