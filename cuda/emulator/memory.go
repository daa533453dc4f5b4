package emulator

// #include <stdlib.h>
// #include "emulator.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Memory is a piece of memory for kernels. It ends at an unmapped page, so that an
// access past its end (rounded up to 16 bytes) is a fault, and holds NaN until written.
type Memory struct {
	start unsafe.Pointer
	bytes int
}

// Alloc returns memory of so many bytes, at a multiple of 16.
func Alloc(bytes int) (*Memory, error) {
	p := C.caper_emu_alloc(C.size_t(bytes))
	if p == nil {
		return nil, fmt.Errorf("emulated memory: no room for %d bytes", bytes)
	}
	return &Memory{p, bytes}, nil
}

// Free gives the memory back. Its addresses are not used again.
func (m *Memory) Free() {
	C.caper_emu_free(m.start)
	*m = Memory{}
}

// Pointer is the address of the first byte.
func (m *Memory) Pointer() unsafe.Pointer { return m.start }

// Of returns the memory as a slice.
func Of[T any](m *Memory) []T {
	var zero T
	return unsafe.Slice((*T)(m.start), m.bytes/int(unsafe.Sizeof(zero)))
}
