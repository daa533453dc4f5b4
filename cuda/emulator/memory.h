// Kernels' memory is cut from one range of addresses, far from all other mappings, so
// that the runtime can tell it from stacks and constants by its address.
#ifndef CAPER_EMULATOR_MEMORY_H
#define CAPER_EMULATOR_MEMORY_H

#define EMU_MEMORY 0x200000000000ul
#define EMU_MEMORY_SIZE 0x040000000000ul // 4 TiB of addresses, never given out twice

#endif
