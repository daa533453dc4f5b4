// Steps of sequences that go on from a window. A task owns a block of channels of all
// steps, as in cpu.c.
#include "decode.h"
#include "vector.h"

enum { BLOCK = 64 };

// Row i of a step, counted from its first: below 0 one of the window, oldest at
// 1 - taps; 0 for a row before the sequence's start.
VECTOR_INLINE const float *row_at(const struct causalconv_decode *d, int s, int i, int channel) {
    if (i >= 0) return d->x.data + (d->start[s] + i) * d->x.stride + channel;
    if (d->from[s] < 0) return 0;
    return d->windows + ((long)d->from[s] * (d->taps - 1) + d->taps - 1 + i) * d->channels + channel;
}

CPU_CLONES
static void decode_block(void *arg, int task) {
    const struct causalconv_decode *d = arg;
    int from = task * BLOCK, n = d->channels - from < BLOCK ? d->channels - from : BLOCK, past = d->taps - 1;
    float tap[MAX_TAPS][BLOCK], left[MAX_TAPS][BLOCK];
    for (int j = 0; j < d->taps; j++)
        for (int c = 0; c < n; c++) tap[j][c] = d->w.data[(from + c) * d->w.stride + j];
    for (int s = 0; s < d->steps; s++) {
        for (int i = 0; i < d->len[s]; i++) {
            float *y = d->y.data + (d->start[s] + i) * d->y.stride + from;
            for (int c = 0; c < n; c += LANES) {
                vec sum = {0};
                for (int j = 0; j < d->taps; j++) {
                    const float *x = row_at(d, s, i + j - past, from + c);
                    if (x) sum += load(tap[j] + c, n - c) * load(x, n - c);
                }
                store(y + c, n - c, silu(sum));
            }
        }
        for (int j = 0; j < past; j++) { // all before the first is written: To may be From
            const float *x = row_at(d, s, d->len[s] + j - past, from);
            if (x)
                memcpy(left[j], x, sizeof(float) * n);
            else
                memset(left[j], 0, sizeof(float) * n);
        }
        for (int j = 0; j < past; j++)
            memcpy(d->windows + ((long)d->to[s] * past + j) * d->channels + from, left[j], sizeof(float) * n);
    }
}

void causalconv_decode(struct cpu *cpu, struct causalconv_decode d) {
    parallel_for(cpu, decode_block, &d, (d.channels + BLOCK - 1) / BLOCK);
}
