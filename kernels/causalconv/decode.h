#ifndef CAPER_CAUSALCONV_DECODE_H
#define CAPER_CAUSALCONV_DECODE_H

#include "causalconv.h"

// The arguments of causalconv_decode: Cache and Steps of decode.go.
struct causalconv_decode {
    int channels, taps, steps;
    const int32_t *start, *len, *from, *to;
    struct matrix x, w, y;
    float *windows;
};

void causalconv_decode(struct cpu *, struct causalconv_decode);

#endif
