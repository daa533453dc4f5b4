#ifndef CAPER_EMBEDDING_H
#define CAPER_EMBEDDING_H

#include "cpu.h"

// The arguments of both directions: row r of y is row ids[r] of the table.
struct embedding {
    int rows, cols;
    const int32_t *ids;
    struct matrix table, y, dy, dtable;
};

void embedding_forward(struct cpu *, struct embedding);
void embedding_backward(struct cpu *, struct embedding);

#endif
