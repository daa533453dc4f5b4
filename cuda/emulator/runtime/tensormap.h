// A tensor map as the emulator writes it in place of the card's secret 128 bytes.
#pragma once

#include <stdint.h>

namespace emu {

struct Map {
    uint32_t magic;
    uint8_t element; // bytes
    uint8_t rank, swizzle;
    uint64_t base;
    uint64_t size[5];   // elements
    uint64_t stride[5]; // bytes; the innermost is the element's
    uint32_t box[5];    // elements

    static constexpr uint32_t MAGIC = 0x70616d54;

    uint32_t row_bytes() const { return box[0] * element; }
    uint32_t rows() const {
        uint32_t n = 1;
        for (int d = 1; d < rank; d++) n *= box[d];
        return n;
    }
};
static_assert(sizeof(Map) <= 128, "fits the card's size");

} // namespace emu
