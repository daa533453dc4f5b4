package engine

import "caper/cuda"

// Rows returns rows [from, from+n) of x for launches and products on a GPU. It belongs to the
// tape's current step and has no gradient.
func (t *Tape) Rows(x *Tensor, from, n int) *Tensor {
	v := t.header()
	*v = Tensor{Rows: n, Cols: x.Cols, Stride: x.Stride, gpu: x.gpu, element: x.element, at: x.at + cuda.Ptr(from*x.Stride*x.element.Size())}
	return v
}

// WorkMatrix is Workspace as a bf16 matrix, for products on a GPU.
func (t *Tape) WorkMatrix(rows, cols int) *Tensor {
	return t.tensor(&t.scratch, rows, cols, cuda.BFloat16)
}

// WorkFloat32 is WorkMatrix in float32.
func (t *Tape) WorkFloat32(rows, cols int) *Tensor {
	return t.tensor(&t.scratch, rows, cols, cuda.Float32)
}
