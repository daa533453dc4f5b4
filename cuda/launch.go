package cuda

// #cgo noescape caper_launch
// #cgo nocallback caper_launch
// #include "launch.h"
import "C"

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unsafe"
)

const (
	maxParameters     = C.CAPER_MAX_PARAMETERS
	maxParameterBytes = C.CAPER_MAX_PARAMETER_BYTES
)

// Dim counts blocks, or threads, along three dimensions. Y and Z may be 0 for 1.
type Dim struct{ X, Y, Z uint32 }

func (d Dim) String() string { n := d.sizes(); return fmt.Sprintf("%d x %d x %d", n[0], n[1], n[2]) }

func (d Dim) sizes() [3]C.uint32_t {
	return [3]C.uint32_t{C.uint32_t(d.X), C.uint32_t(max(d.Y, 1)), C.uint32_t(max(d.Z, 1))}
}

// Launch says how a kernel runs.
type Launch struct {
	Grid, Block Dim
	Shared      Bytes // dynamic shared memory of a block, up to Info.SharedOptIn less the static
	Cluster     Dim   // blocks that share their shared memory; none where X is 0
	Cooperative bool  // all blocks are on the GPU at once
}

// Args are the parameters of a launch in the kernel's order. They may be used again:
// Reset and the methods that add take no memory once it has held as many.
type Args struct {
	bytes   []byte
	offsets []C.uint32_t
	sizes   []uint32
}

// Reset takes all parameters out.
func (a *Args) Reset() *Args {
	a.bytes, a.offsets, a.sizes = a.bytes[:0], a.offsets[:0], a.sizes[:0]
	return a
}

// place makes room for a parameter at a multiple of its alignment.
func (a *Args) place(size, align int) []byte {
	for len(a.bytes)%align != 0 {
		a.bytes = append(a.bytes, 0)
	}
	start := len(a.bytes)
	a.offsets = append(a.offsets, C.uint32_t(start))
	a.sizes = append(a.sizes, uint32(size))
	for range size {
		a.bytes = append(a.bytes, 0)
	}
	return a.bytes[start:]
}

// Ptr adds a pointer to the GPU's memory.
func (a *Args) Ptr(p Ptr) *Args { return a.Uint64(uint64(p)) }

// Int32 adds an int.
func (a *Args) Int32(v int) *Args {
	if v != int(int32(v)) {
		panic(fmt.Sprintf("cuda: parameter %d of a kernel: %d is no int32", len(a.sizes), v))
	}
	return a.Uint32(uint32(int32(v)))
}

// Uint32 adds an unsigned int.
func (a *Args) Uint32(v uint32) *Args {
	binary.NativeEndian.PutUint32(a.place(4, 4), v)
	return a
}

// Int64 adds a long long.
func (a *Args) Int64(v int64) *Args { return a.Uint64(uint64(v)) }

// Uint64 adds an unsigned long long.
func (a *Args) Uint64(v uint64) *Args {
	binary.NativeEndian.PutUint64(a.place(8, 8), v)
	return a
}

// Float32 adds a float.
func (a *Args) Float32(v float32) *Args { return a.Uint32(math.Float32bits(v)) }

// Float64 adds a double.
func (a *Args) Float64(v float64) *Args { return a.Uint64(math.Float64bits(v)) }

// TensorMap adds a tensor map, which the kernel takes as const __grid_constant__ TensorMap.
func (a *Args) TensorMap(m *TensorMap) *Args {
	copy(a.place(len(m.opaque), 128), m.opaque[:])
	return a
}

// Set makes a the same parameters as b.
func (a *Args) Set(b *Args) {
	a.bytes, a.offsets, a.sizes = append(a.bytes[:0], b.bytes...), append(a.offsets[:0], b.offsets...), append(a.sizes[:0], b.sizes...)
}

// Equal reports that both are the same parameters.
func (a *Args) Equal(b *Args) bool {
	return bytes.Equal(a.bytes, b.bytes) && slices.Equal(a.sizes, b.sizes)
}

// Bytes are the parameters as the kernel reads them.
func (a *Args) Bytes() []byte { return a.bytes }

// Launch runs the kernel in the stream. Parameters are copied by the call. It takes no
// memory.
func (f *Function) Launch(s *Stream, l Launch, a *Args) error {
	if err := f.check(a); err != nil {
		return err
	}
	if err := f.allowShared(l.Shared); err != nil {
		return err
	}
	how := C.struct_caper_launch{grid: l.Grid.sizes(), block: l.Block.sizes(), shared_bytes: C.uint32_t(l.Shared)}
	if l.Cluster.X > 0 {
		how.cluster = l.Cluster.sizes()
	}
	if l.Cooperative {
		how.cooperative = 1
	}
	r := C.caper_launch(s.device.context, f.handle, s.handle, &how, unsafe.Pointer(unsafe.SliceData(a.bytes)), C.size_t(len(a.bytes)),
		unsafe.SliceData(a.offsets), C.int(len(a.offsets)))
	if r != 0 {
		return f.launchFailure(r, s, l)
	}
	return nil
}

// check compares the parameters with those that the kernel was compiled with, as far as
// the driver knows them. Without it a forgotten one would be read from the next one's place.
func (f *Function) check(a *Args) error {
	if len(a.sizes) > maxParameters || len(a.bytes) > maxParameterBytes {
		return fmt.Errorf("launch of %s: %d parameters of %d bytes, at most %d of %d are allowed",
			f.Name, len(a.sizes), len(a.bytes), maxParameters, maxParameterBytes)
	}
	if f.parameters == nil {
		return nil
	}
	if len(a.sizes) != len(f.parameters) {
		return fmt.Errorf("launch of %s: %d parameters given, the kernel has %d", f.Name, len(a.sizes), len(f.parameters))
	}
	for i, size := range a.sizes {
		if size != f.parameters[i] {
			return fmt.Errorf("launch of %s: parameter %d has %d bytes, in the kernel %d", f.Name, i, size, f.parameters[i])
		}
	}
	return nil
}

func (f *Function) launchFailure(r C.CUresult, s *Stream, l Launch) error {
	shape := fmt.Sprintf("%s, grid %v, block %v", f.Name, l.Grid, l.Block)
	if l.Shared > 0 {
		shape += fmt.Sprintf(", %v of dynamic shared memory", l.Shared)
	}
	if l.Cluster.X > 0 {
		shape += fmt.Sprintf(", cluster %v", l.Cluster)
	}
	e := s.device.failure(r, "cuLaunchKernelEx", "of %s,", shape)
	if r == C.CUDA_ERROR_INVALID_VALUE {
		e.Remedy = fmt.Sprintf("blocks of this kernel have 1 to %d threads and %v of shared memory in all", f.MaxThreads, s.device.SharedOptIn)
	}
	return e
}
