package deltagate

import (
	_ "embed"

	"caper/cuda"
	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source         = engine.NewKernelText("kernels/deltagate/op.cu", text)
	forward        = source.Kernel("deltagate_forward")
	backward       = source.Kernel("deltagate_backward")
	weightGradient = source.Kernel("deltagate_weight_gradient")
)

// rows of a block: a row a warp forward, and so many backward that their parts stay few.
const (
	forwardRows  = 8
	backwardRows = 64
)

// grid is a launch over groups of rows and runs of 32 heads.
func (o *op) grid(rows int) cuda.Launch {
	l := engine.Blocks((o.a.Rows+rows-1)/rows, 256)
	l.Grid.Y = uint32((o.a.Cols + 31) / 32)
	return l
}

func cudaForward(t *engine.Tape, o *op) {
	t.Launch(forward, o.grid(forwardRows), t.Args().
		Tensor(o.a).Tensor(o.b).Tensor(o.aLog).Tensor(o.dtBias).Tensor(o.g).Tensor(o.beta).
		Int(o.a.Rows).Int(o.a.Cols).Stride(o.a).Stride(o.b).Stride(o.g).Stride(o.beta))
}

// cudaBackward takes the gradients of both results, either of which may be nil.
func cudaBackward(t *engine.Tape, o *op, dg, dbeta *engine.Tensor) {
	var da, db, daLog, ddtBias *engine.Tensor
	if dg != nil {
		da, daLog, ddtBias = t.Accumulate(o.a), t.AddTo(o.aLog), t.AddTo(o.dtBias)
	}
	if dbeta != nil {
		db = t.Accumulate(o.b)
	}
	l := o.grid(backwardRows)
	blocks, heads := int(l.Grid.X), o.a.Cols
	var partial cuda.Ptr
	if daLog != nil || ddtBias != nil {
		partial = t.Workspace(4 * 2 * blocks * heads)
	}
	t.Launch(backward, l, t.Args().
		Tensor(o.a).Tensor(o.b).Tensor(o.aLog).Tensor(o.dtBias).Tensor(o.g).Tensor(dg).Tensor(dbeta).Tensor(da).Tensor(db).Ptr(partial).
		Int(o.a.Rows).Int(heads).Int(backwardRows).Stride(o.a).Stride(o.b).Stride(o.g).
		Stride(dg).Stride(dbeta).Stride(da).Stride(db).Accumulate(da).Accumulate(db))
	if partial != 0 {
		l = engine.Blocks((heads+31)/32, 256)
		l.Grid.Y = 2
		t.Launch(weightGradient, l, t.Args().Ptr(partial).Tensor(ddtBias).Tensor(daLog).Int(blocks).Int(heads))
	}
}
