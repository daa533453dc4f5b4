package cuda

// #include "launch.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// TensorMap describes a tensor to the unit that copies boxes of it to shared memory
// (TMA). Kernels take it by value; Args.TensorMap sees to its alignment of 128 bytes.
type TensorMap struct{ opaque [128]byte }

// Element is a type of the elements of tensors.
type Element uint32

const (
	Uint8    Element = C.CU_TENSOR_MAP_DATA_TYPE_UINT8
	Float32  Element = C.CU_TENSOR_MAP_DATA_TYPE_FLOAT32
	BFloat16 Element = C.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
)

// Size is the number of bytes of an element.
func (e Element) Size() int {
	switch e {
	case Uint8:
		return 1
	case BFloat16:
		return 2
	}
	return 4
}

// TensorLayout is a tensor in the GPU's memory and the boxes it is copied in. Dimensions
// are listed from the innermost.
type TensorLayout struct {
	Element Element
	At      Ptr      // a multiple of 16
	Sizes   []uint64 // elements; 1 to 5 dimensions
	Strides []uint64 // bytes from one to the next along dimensions 1, 2, ...; multiples of 16
	Box     []uint32 // elements, 1 to 256 each; the innermost a multiple of 16 bytes
	Swizzle int      // 0, 32, 64 or 128 bytes, at least the box's innermost
}

// TensorMap makes the map of a tensor.
func (d *Device) TensorMap(l TensorLayout) (m TensorMap, err error) {
	if err := l.check(); err != nil {
		return m, fmt.Errorf("tensor map: %w", err)
	}
	swizzle := map[int]C.CUtensorMapSwizzle{0: 0, 32: 1, 64: 2, 128: 3}[l.Swizzle]
	r := C.caper_tensor_map(d.context, unsafe.Pointer(&m.opaque[0]), C.CUtensorMapDataType(l.Element), C.uint32_t(len(l.Sizes)), C.CUdeviceptr(l.At),
		(*C.uint64_t)(&l.Sizes[0]), (*C.uint64_t)(unsafe.SliceData(l.Strides)), (*C.uint32_t)(&l.Box[0]), swizzle)
	if r != 0 {
		return m, d.failure(r, "cuTensorMapEncodeTiled", "of sizes %v, strides %v, box %v, swizzle %d at %v", l.Sizes, l.Strides, l.Box, l.Swizzle, l.At)
	}
	return m, nil
}

// check says in words what the driver would only call an invalid value.
func (l TensorLayout) check() error {
	rank := len(l.Sizes)
	if rank < 1 || rank > 5 || len(l.Strides) != rank-1 || len(l.Box) != rank {
		return fmt.Errorf("%d sizes, %d strides, %d sides of the box: n from 1 to 5, n-1 and n are needed", rank, len(l.Strides), len(l.Box))
	}
	if l.At%16 != 0 {
		return fmt.Errorf("address %v is no multiple of 16", l.At)
	}
	for i, stride := range l.Strides {
		if stride%16 != 0 || stride >= 1<<40 {
			return fmt.Errorf("stride %d of dimension %d is no multiple of 16 below 2^40", stride, i+1)
		}
	}
	for i := range rank {
		if l.Sizes[i] < 1 || l.Sizes[i] > 1<<32 {
			return fmt.Errorf("size %d of dimension %d is not from 1 to 2^32", l.Sizes[i], i)
		}
		if l.Box[i] < 1 || l.Box[i] > 256 {
			return fmt.Errorf("box measures %d along dimension %d: 1 to 256 are allowed", l.Box[i], i)
		}
	}
	row := int(l.Box[0]) * l.Element.Size()
	switch {
	case row%16 != 0:
		return fmt.Errorf("rows of the box have %d bytes, no multiple of 16", row)
	case l.Swizzle != 0 && l.Swizzle != 32 && l.Swizzle != 64 && l.Swizzle != 128:
		return fmt.Errorf("swizzle of %d bytes: 0, 32, 64 or 128", l.Swizzle)
	case l.Swizzle != 0 && row > l.Swizzle:
		return fmt.Errorf("rows of the box have %d bytes, more than the swizzle's %d", row, l.Swizzle)
	}
	return nil
}
