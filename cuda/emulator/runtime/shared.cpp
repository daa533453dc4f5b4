#include "shared.h"

#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "check.h"
#include "fault.h"

namespace emu {

// Addresses in the window: dynamic memory ends at DYNAMIC_END, the declared arrays lie
// from DECLARED to the end.
constexpr size_t WINDOW = 256 << 10, DYNAMIC_END = 236 << 10, DECLARED = 240 << 10;
constexpr size_t CARD = 227 << 10; // what a block may have on a card, both parts together
constexpr size_t GAP = 16;         // between declared arrays

struct Declared { const void *declaration; char *start; size_t bytes; };

static char *window;
static char *dynamic;
static size_t dynamic_size;
static std::vector<Declared> declared;
static char *free_declared;

static void map_window() {
    window = (char *)mmap(nullptr, WINDOW + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (window == MAP_FAILED) abort();
    mprotect(window, 4096, PROT_NONE);
    mprotect(window + DYNAMIC_END, DECLARED - DYNAMIC_END, PROT_NONE);
    mprotect(window + WINDOW, 4096, PROT_NONE);
    memset(window + 4096, 0xff, DYNAMIC_END - 4096);
    free_declared = window + WINDOW;
}

void reset_shared(size_t bytes) {
    if (!window) map_window();
    dynamic = window + (DYNAMIC_END - bytes) / 1024 * 1024;
    dynamic_size = bytes;
    memset(dynamic, 0xff, bytes);
    declared.clear();
    free_declared = window + DECLARED;
    memset(free_declared, 0xff, WINDOW - DECLARED);
}

void *dynamic_shared() { return dynamic; }

void *static_shared(const void *declaration, size_t bytes, size_t align) {
    for (const Declared &d : declared)
        if (d.declaration == declaration) return d.start;
    if (align < 16) align = 16;
    char *start = (char *)(((uintptr_t)free_declared + align - 1) / align * align);
    if (start + bytes > window + WINDOW)
        fail(CALLED_FROM, "more than %zu KiB of declared shared memory: use the launch's", (WINDOW - DECLARED) >> 10);
    free_declared = start + bytes + GAP;
    declared.push_back({declaration, start, bytes});
    if (dynamic_size + (free_declared - window - DECLARED) > CARD)
        fail(CALLED_FROM, "more than %zu KiB of shared memory in a block", CARD >> 10);
    return start;
}

bool near_shared(const void *p) { return (const char *)p >= window && (const char *)p < window + WINDOW + 4096; }
const char *shared_end() { return dynamic + dynamic_size; }

bool in_shared(const void *p, size_t bytes) {
    const char *from = (const char *)p, *to = from + bytes;
    if (from >= dynamic && to <= dynamic + dynamic_size) return true;
    for (const Declared &d : declared)
        if (from >= d.start && to <= d.start + d.bytes) return true;
    return false;
}

void check_shared(const void *at, const char *what, const void *p, size_t bytes, size_t align) {
    if ((uintptr_t)p % align) fail(at, "misaligned access: %s at shared address %#x, which is no multiple of %zu", what, shared_address(p), align);
    if (!in_shared(p, bytes)) fail(at, "out of bounds: %s outside the block's shared memory", what);
}

uint32_t shared_address(const void *p) { return (uint32_t)((const char *)p - window); }
char *shared_at(uint32_t address) { return window + address; }

} // namespace emu
