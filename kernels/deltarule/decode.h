#ifndef CAPER_DELTARULE_DECODE_H
#define CAPER_DELTARULE_DECODE_H

#include "deltarule.h"

// The arguments of deltarule_decode: Cache and Steps of decode.go. Of `rule` only the
// shapes and the rows' inputs and outputs are used.
struct deltarule_decode {
    struct deltarule rule;
    int steps;
    const int32_t *start, *len, *from, *to, *open, *filled;
    float *states, *keys, *writes, *decays;
};

void deltarule_decode(struct deltarule_decode);

#endif
