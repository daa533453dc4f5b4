#define _GNU_SOURCE
#include "memory.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "emulator.h"

#define PAGE 4096

// Where the next block may go. Two copies of this file in one process find each
// other's blocks by the kernel's refusal to map a page twice.
static _Atomic uintptr_t next = EMU_MEMORY;

static size_t pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

// Pages: [size of all] [unmapped] [... the memory] [unmapped]
void *caper_emu_alloc(size_t bytes) {
    if (bytes == 0) bytes = 1; // so that the address is one of its pages
    size_t body = pages(bytes), whole = body + 3 * PAGE;
    for (int attempt = 0; attempt < 1 << 16; attempt++) {
        uintptr_t at = atomic_fetch_add(&next, whole);
        if (at + whole > EMU_MEMORY + EMU_MEMORY_SIZE) return 0;
        char *p = mmap((void *)at, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (p == MAP_FAILED) continue;
        *(size_t *)p = whole;
        char *start = p + 2 * PAGE;
        mprotect(p + PAGE, PAGE, PROT_NONE);
        mprotect(start + body, PAGE, PROT_NONE);
        memset(start, 0xff, body);
        return start + (body - bytes) / 16 * 16;
    }
    return 0;
}

void caper_emu_free(void *memory) {
    if (!memory) return;
    char *p = (char *)((uintptr_t)memory / PAGE * PAGE) - 2 * PAGE;
    munmap(p, *(size_t *)p);
}
