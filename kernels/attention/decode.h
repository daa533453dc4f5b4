#ifndef CAPER_ATTENTION_DECODE_H
#define CAPER_ATTENTION_DECODE_H

#include "attention.h"

// BLOCK_LEN is the positions of a block of the cache.
enum { BLOCK_LEN = 64 };

// The arguments of attention_decode: Places and Cache of decode.go. gate may be null.
struct attention_decode {
    int rows, heads, kv_heads, dim, gate_stride, gate_offset, bundles;
    const int32_t *position, *table, *blocks, *first, *shared;
    struct matrix q, k, v, gate, y;
    float *keys, *values;
    struct cpu *cpu;
};

void attention_decode(struct attention_decode);

#endif
