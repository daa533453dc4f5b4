// What the parts of the runtime do when a block begins and when a thread exits.
#pragma once

#include "block.h"

namespace emu {

void check_exit(); // of the running thread

void reset_shared(size_t dynamic_bytes);
void reset_barriers();
void reset_warps();
void reset_copies();
void reset_warpgroups();

void exit_copies();
void exit_warpgroups();

} // namespace emu
