// Package engine holds what every operator works with: tensors, the devices they
// live on, the tape that runs operators backwards, the arena that feeds them
// memory, packed prefix trees, and counter-based random numbers.
//
// Everything in a decoder on packed tokens is a matrix of one row per token, so a
// Tensor is a matrix; heads and their dimensions are arguments of the operators
// that care.
package engine

import (
	"fmt"

	"caper/cuda"
)

// Tensor is a matrix of Rows x Cols elements, row-major, Stride elements from one
// row to the next. At most one of F32 and F64 is set: F32 on the CPU device, F64
// on the reference device, where operators run their float64 specification, none on
// a GPU, where elements are reached by Address, Read and Write, and on a device of
// shapes.
//
// A view (Columns) shares the storage, and the gradient, of the tensor it was cut
// from.
type Tensor struct {
	Rows, Cols, Stride int
	F32                []float32
	F64                []float64

	gpu     *GPU         // that holds the elements; nil on other devices
	at      cuda.Ptr     // their address there
	element cuda.Element // BFloat16 or Float32

	grad   *Tensor // this tensor's gradient, nil until somebody adds to it
	frozen bool    // never gets a gradient
	fresh  bool    // a gradient that holds nothing yet, see Accumulate

	inner bool // made by a layer for itself: its gradient goes with the layer
	brief bool // its elements do, too

	lasting bool // lives across steps: a weight or its gradient
	width   int  // bytes an element would take, on a device of shapes

	base   *Tensor // for a view: the tensor it was cut from,
	offset int     // and its first column there
}

// Columns returns a view of columns [from, from+cols) of x. The view belongs to
// the tape's current step.
func (t *Tape) Columns(x *Tensor, from, cols int) *Tensor {
	if from < 0 || cols < 0 || from+cols > x.Cols {
		panic(fmt.Sprintf("engine: columns [%d,%d) of a tensor %s", from, from+cols, x))
	}
	v := t.header()
	*v = Tensor{Rows: x.Rows, Cols: cols, Stride: x.Stride, frozen: x.frozen, lasting: x.lasting, width: x.width, base: x, offset: from,
		gpu: x.gpu, element: x.element}
	switch {
	case x.gpu != nil:
		v.at = x.at + cuda.Ptr(from*x.element.Size())
	case x.F32 != nil:
		v.F32 = x.F32[from:]
	case x.F64 != nil:
		v.F64 = x.F64[from:]
	}
	return v
}

// Gradient returns the gradient of x, or nil when none has been added yet. A
// backward function whose output has none has nothing to do.
func (t *Tape) Gradient(x *Tensor) *Tensor {
	if x.base == nil {
		return x.grad
	}
	g := t.Gradient(x.base)
	if g == nil {
		return nil
	}
	return t.Columns(g, x.offset, x.Cols)
}

// AddTo returns the tensor to which a backward function adds x's gradient: zeros
// at first use. It returns nil when x is frozen, and then there is nothing to add.
func (t *Tape) AddTo(x *Tensor) *Tensor {
	if x.frozen {
		return nil
	}
	if x.base != nil {
		g := t.AddTo(x.base)
		if g == nil {
			return nil
		}
		return t.Columns(g, x.offset, x.Cols)
	}
	if x.grad == nil {
		x.grad = t.newGradient(x)
		x.grad.clear()
	}
	return x.grad
}

// Accumulate is AddTo for a backward function that writes each element once. Where
// nobody has added to x's gradient yet it comes back fresh: its content is undefined
// and the function stores instead of adding, which saves clearing and reading it.
func (t *Tape) Accumulate(x *Tensor) *Tensor {
	if x.frozen || x.base != nil || x.grad != nil || !t.CPU() && t.gpu == nil {
		return t.AddTo(x)
	}
	x.grad = t.newGradient(x)
	g := t.header()
	*g = *x.grad
	g.fresh = true
	return g
}

// Fresh reports whether g is a gradient that Accumulate returned fresh.
func (g *Tensor) Fresh() bool { return g != nil && g.fresh }

func (x *Tensor) clear() {
	clear(x.F32)
	clear(x.F64)
	if x.gpu != nil {
		x.gpu.fill(x.at, 0, x.storage())
	}
}

// String gives the shape and the element type: "[3 x 4] float32".
func (x *Tensor) String() string {
	kind := ""
	switch {
	case x.F32 != nil:
		kind = " float32"
	case x.F64 != nil:
		kind = " float64"
	case x.gpu != nil && x.IsFloat32():
		kind = " float32"
	case x.gpu != nil:
		kind = " bf16"
	}
	return fmt.Sprintf("[%d x %d]%s", x.Rows, x.Cols, kind)
}

// Contiguous reports whether the rows of x follow each other without gaps.
func (x *Tensor) Contiguous() bool { return x.Stride == x.Cols || x.Rows <= 1 }

// At returns element (i, j) as float64, for tests and reports; 0 where x has no
// elements. On a GPU it waits for all work: Read takes all elements at once.
func (x *Tensor) At(i, j int) float64 {
	switch {
	case x.gpu != nil:
		var v [1]float32
		x.single(i, j).Read(v[:])
		return float64(v[0])
	case x.F32 != nil:
		return float64(x.F32[i*x.Stride+j])
	case x.F64 != nil:
		return x.F64[i*x.Stride+j]
	}
	return 0
}

// Set stores v as element (i, j), for tests and initial values. On a GPU it waits for all
// work: Write stores all elements at once.
func (x *Tensor) Set(i, j int, v float64) {
	switch {
	case x.gpu != nil:
		x.single(i, j).Write([]float32{float32(v)})
	case x.F32 != nil:
		x.F32[i*x.Stride+j] = float32(v)
	case x.F64 != nil:
		x.F64[i*x.Stride+j] = v
	}
}

// Param is a tensor that lives across steps: a model weight with its gradient,
// which accumulates until ZeroGrad.
type Param struct {
	Name string
	*Tensor
	// Grad has the shape of the weight; nil when the parameter is frozen.
	Grad *Tensor
}

// NewParam allocates a parameter of zeros with a zero gradient on dev. On a GPU the weight
// is bf16 and the gradient float32; what lies between their rows is 0 and stays so.
func NewParam(dev Device, name string, rows, cols int) *Param {
	return newParam(dev, name, rows, cols, cuda.BFloat16)
}

// NewFloat32Param is NewParam for a weight that is float32 on a GPU, too.
func NewFloat32Param(dev Device, name string, rows, cols int) *Param {
	return newParam(dev, name, rows, cols, cuda.Float32)
}

func newParam(dev Device, name string, rows, cols int, element cuda.Element) *Param {
	p := &Param{Name: name, Tensor: dev.tensor(rows, cols, element)}
	if p.gpu != nil {
		p.Grad = p.gpu.float32Like(p.Tensor)
	} else {
		p.Grad = dev.tensor(rows, cols, element)
	}
	p.Tensor.grad = p.Grad
	p.Tensor.lasting, p.Grad.lasting = true, true
	return p
}

// NewFrozen allocates a parameter that never gets a gradient.
func NewFrozen(dev Device, name string, rows, cols int) *Param {
	return newFrozen(dev, name, rows, cols, cuda.BFloat16)
}

// NewFrozenFloat32 is NewFrozen for a weight that is float32 on a GPU, too.
func NewFrozenFloat32(dev Device, name string, rows, cols int) *Param {
	return newFrozen(dev, name, rows, cols, cuda.Float32)
}

func newFrozen(dev Device, name string, rows, cols int, element cuda.Element) *Param {
	p := &Param{Name: name, Tensor: dev.tensor(rows, cols, element)}
	p.frozen, p.lasting = true, true
	return p
}

// ZeroGrad clears the accumulated gradient.
func (p *Param) ZeroGrad() {
	if p.Grad != nil {
		p.Grad.clear()
	}
}
