#include "tensormap.h"

#include <string.h>

#include "emulator.h"

using emu::Map;

// What is wrong with the arguments, or null. The rules are those that the driver's
// documentation gives for cuTensorMapEncodeTiled, and what the emulator leaves out.
static const char *refusal(int element, uint32_t rank, void *address, const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                           const uint32_t *element_strides, int interleave, int swizzle, int fill) {
    if (!element) return "the emulator knows tensor maps of u8, f32 and bf16";
    if (rank < 1 || rank > 5) return "a tensor map has 1 to 5 dimensions";
    if (interleave || fill) return "the emulator knows neither interleaving nor NaN fill";
    if (swizzle < 0 || swizzle > 3) return "the emulator knows swizzles of 0, 32, 64 and 128 bytes";
    if ((uintptr_t)address % 16) return "the address of a tensor map is a multiple of 16";
    for (uint32_t d = 0; d < rank; d++) {
        if (sizes[d] == 0 || sizes[d] > 1ull << 32) return "a size of a tensor map is 1 to 2^32";
        if (box[d] == 0 || box[d] > 256) return "a box measures 1 to 256 elements each way";
        if (element_strides && element_strides[d] != 1) return "the emulator knows element strides of 1";
        if (d && (strides[d - 1] % 16 || strides[d - 1] >= 1ull << 40)) return "a stride of a tensor map is a multiple of 16 below 2^40";
    }
    if (box[0] * element % 16) return "a box's row is a multiple of 16 bytes";
    if (swizzle && box[0] * element > 16u << swizzle) return "a box's row is no longer than its swizzle";
    return nullptr;
}

int caper_emu_tensor_map(void *out, int type, uint32_t rank, void *address, const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                         const uint32_t *element_strides, int interleave, int swizzle, int, int fill, const char **reason) {
    const int element = type == 0 ? 1 : type == 7 ? 4 : type == 9 ? 2 : 0;
    if ((*reason = refusal(element, rank, address, sizes, strides, box, element_strides, interleave, swizzle, fill))) return 1;
    Map m = {};
    m.magic = Map::MAGIC;
    m.element = element;
    m.rank = rank;
    m.swizzle = swizzle;
    m.base = (uint64_t)address;
    for (uint32_t d = 0; d < rank; d++) {
        m.size[d] = sizes[d];
        m.stride[d] = d ? strides[d - 1] : element;
        m.box[d] = box[d];
    }
    memset(out, 0, 128);
    memcpy(out, &m, sizeof m);
    return 0;
}
