// Happens-before between the memory accesses of a launch: each thread keeps a vector
// clock, each byte its last write and two reads (Flanagan and Freund, "FastTrack:
// efficient and precise dynamic race detection", 2009). Compiled in for kernels whose
// loads and stores g++ -fsanitize=thread reports; otherwise every function is empty.
#pragma once

#include "block.h"

#ifndef EMU_RACES
#define EMU_RACES 0
#endif

namespace emu::race {

using Clock = std::vector<uint32_t>; // by thread of the block: how far it is known

#if EMU_RACES
void begin_launch();
void begin_block();

// Accesses that the runtime makes for a thread at the kernel's instruction `at`.
void read(const Thread *, const void *p, size_t bytes, const void *at);
void write(const Thread *, const void *p, size_t bytes, const void *at);
void atomic(const void *p, size_t bytes, const void *at);

// A copy into shared memory: from its start nobody may touch the bytes, until it has
// landed for somebody who waited. They are then as written by the thread at a clock of
// its own: a bulk copy's is the one that its start returned.
uint32_t start_copy(void *p, size_t bytes, const void *at);
void land_copy(const Thread *, void *p, size_t bytes, const void *at, uint32_t clock, bool bulk);

// Reads by a thread's bulk copies, and by the products of the running thread's warpgroup:
// threads' stores need fence_async before. A product knows what the group knew when it was
// issued; that it has read is known to the group at its end.
void read_bulk(const Thread *, const void *p, size_t bytes, const void *at);
Clock known_to_group();
void read_product(const Clock &known, const void *p, size_t bytes, const void *at);
void end_product(const Clock &known);
void fence_async();
void fence_grid();

// What the running thread has done and seen is in the clock; t knows what the clock holds.
void release(Clock &);
void acquire(const Thread *t, const Clock &);
void note(Clock &, const Thread *, uint32_t clock); // adds that the thread came to the clock
uint32_t now(const Thread *);
#else
inline void begin_launch() {}
inline void begin_block() {}
inline void read(const Thread *, const void *, size_t, const void *) {}
inline void write(const Thread *, const void *, size_t, const void *) {}
inline void atomic(const void *, size_t, const void *) {}
inline uint32_t start_copy(void *, size_t, const void *) { return 0; }
inline void land_copy(const Thread *, void *, size_t, const void *, uint32_t, bool) {}
inline void read_bulk(const Thread *, const void *, size_t, const void *) {}
inline Clock known_to_group() { return {}; }
inline void read_product(const Clock &, const void *, size_t, const void *) {}
inline void end_product(const Clock &) {}
inline void fence_async() {}
inline void fence_grid() {}
inline void release(Clock &) {}
inline void acquire(const Thread *, const Clock &) {}
inline void note(Clock &, const Thread *, uint32_t) {}
inline uint32_t now(const Thread *) { return 0; }
#endif

} // namespace emu::race
