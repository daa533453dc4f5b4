// The block's shared memory: a window of 256 KiB of addresses, as on the card, that
// holds the launch's dynamic part and the declared arrays. Unmapped pages follow both.
#pragma once

#include "block.h"

namespace emu {

// Fails unless [p, p + bytes) is declared shared memory and p a multiple of align.
void check_shared(const void *at, const char *what, const void *p, size_t bytes, size_t align);

bool in_shared(const void *p, size_t bytes); // wholly inside the dynamic part or a declared array
bool near_shared(const void *p);             // anywhere in the window
const char *shared_end();                    // of the dynamic part
char *shared_at(uint32_t address);

} // namespace emu
