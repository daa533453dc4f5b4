package engine

import (
	"unsafe"

	"caper/cuda"
)

// Device is where tensors live and operators run. The set is closed: each
// operator knows how to run on each device, so a new device is added here.
type Device interface {
	// Name identifies the device in logs: "cpu avx512", "reference".
	Name() string
	// tensor returns zeros that live across steps. Only a GPU has several types of elements.
	tensor(rows, cols int, element cuda.Element) *Tensor
	reference() bool
	runtime() unsafe.Pointer
}

// Reference returns the device on which every operator runs its specification:
// plain loops in float64. It is the oracle of the tests and slow on purpose.
func Reference() Device { return referenceDevice{} }

type referenceDevice struct{}

func (referenceDevice) Name() string            { return "reference" }
func (referenceDevice) reference() bool         { return true }
func (referenceDevice) runtime() unsafe.Pointer { return nil }
func (referenceDevice) tensor(rows, cols int, _ cuda.Element) *Tensor {
	return &Tensor{Rows: rows, Cols: cols, Stride: cols, F64: make([]float64, rows*cols)}
}

// CPU returns the processor as a device: float32, operators in C on a pool of
// threads. threads 0 means one per core. Results are the same bits for any
// number of threads.
func CPU(threads int, options ...Option) Device {
	d := &cpuDevice{}
	for _, set := range options {
		set(d)
	}
	d.rt = newRuntime(threads, d.precision)
	return d
}

// Option is a property of a CPU device.
type Option func(*cpuDevice)

// WithPrecision sets what the linear layers' products compute with.
func WithPrecision(p Precision) Option { return func(d *cpuDevice) { d.precision = p } }

type cpuDevice struct {
	rt        unsafe.Pointer
	precision Precision
}

// Name tells which instructions multiply matrices: "cpu avx512", "cpu amx-bf16".
func (d *cpuDevice) Name() string            { return "cpu " + kernelName(d.precision) }
func (*cpuDevice) reference() bool           { return false }
func (d *cpuDevice) runtime() unsafe.Pointer { return d.rt }
func (*cpuDevice) tensor(rows, cols int, _ cuda.Element) *Tensor {
	return &Tensor{Rows: rows, Cols: cols, Stride: cols, F32: make([]float32, rows*cols)}
}

// CPURuntime returns the C runtime (struct cpu of cpu.h) that the C part of an
// operator takes as its first argument.
func (t *Tape) CPURuntime() unsafe.Pointer { return t.dev.runtime() }

// RuntimeOf is CPURuntime for work outside a tape, such as the optimiser's.
func RuntimeOf(dev Device) unsafe.Pointer { return dev.runtime() }

// Pointer returns the address of the first element of x for the C part of an
// operator, and nil for a nil or empty tensor.
func (x *Tensor) Pointer() unsafe.Pointer {
	if x == nil || len(x.F32) == 0 {
		return nil
	}
	return unsafe.Pointer(&x.F32[0])
}

// Pitch returns the stride of x, and 0 for a nil tensor: Pointer's companion where
// a gradient is not wanted.
func (x *Tensor) Pitch() int {
	if x == nil {
		return 0
	}
	return x.Stride
}
