package engine

import (
	"unsafe"

	"caper/cuda"
)

// Shapes returns a device whose tensors have a shape and no elements, each of which
// would take elementBytes. Operators do nothing on it but ask for their tensors and for
// what scratch they take on the CPU, so a step of any size is walked at once and in no
// memory; an Observer hears what it would launch, and Tape.Demand tells what memory the
// CPU would need.
func Shapes(elementBytes int) Device { return shapeDevice{elementBytes} }

type shapeDevice struct{ width int }

func (shapeDevice) Name() string            { return "shapes" }
func (shapeDevice) reference() bool         { return false }
func (shapeDevice) runtime() unsafe.Pointer { return nil }
func (d shapeDevice) tensor(rows, cols int, _ cuda.Element) *Tensor {
	return &Tensor{Rows: rows, Cols: cols, Stride: cols, width: d.width}
}

// Stored reports whether x has elements: false on a device of shapes.
func (x *Tensor) Stored() bool {
	return x.F32 != nil || x.F64 != nil || x.gpu != nil && x.gpu.device != nil
}

// Bytes returns what the elements of x take, or would take.
func (x *Tensor) Bytes() int {
	width := x.width
	switch {
	case x.gpu != nil:
		width = x.element.Size()
	case x.F32 != nil:
		width = 4
	case x.F64 != nil:
		width = 8
	}
	return x.Rows * x.Cols * width
}

// Whole returns the tensor that x is a view of, or x.
func (x *Tensor) Whole() *Tensor {
	for x.base != nil {
		x = x.base
	}
	return x
}

// Lasting reports whether x lives across steps: a weight or its gradient.
func (x *Tensor) Lasting() bool { return x.lasting }

// MomentLike returns zeros of the shape of x for an optimiser's running mean: in
// float64 on the reference device, in float32 elsewhere. On a GPU its rows are as far apart
// as those of x.
func MomentLike(x *Tensor) *Tensor {
	if x.gpu != nil {
		return x.gpu.float32Like(x)
	}
	z := &Tensor{Rows: x.Rows, Cols: x.Cols, Stride: x.Cols, lasting: true}
	switch n := x.Rows * x.Cols; {
	case x.F64 != nil:
		z.F64 = make([]float64, n)
	case x.F32 != nil:
		z.F32 = make([]float32, n)
	default:
		z.width = 4
	}
	return z
}
