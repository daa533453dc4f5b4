package residual

import (
	_ "embed"

	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source   = engine.NewKernelText("kernels/residual/op.cu", text)
	forward  = source.Kernel("residual_forward")
	backward = source.Kernel("residual_backward")
)

func cudaForward(t *engine.Tape, sum, x, y *engine.Tensor) {
	t.Launch(forward, engine.ColumnBlocks(sum.Rows, sum.Cols, 8, 256), t.Args().
		Tensor(x).Tensor(y).Tensor(sum).Int(sum.Cols).Stride(x).Stride(y).Stride(sum))
}

func cudaBackward(t *engine.Tape, dx, dy, dsum *engine.Tensor) {
	if dx == nil && dy == nil {
		return
	}
	t.Launch(backward, engine.ColumnBlocks(dsum.Rows, dsum.Cols, 8, 256), t.Args().
		Tensor(dsum).Tensor(dx).Tensor(dy).Int(dsum.Cols).Stride(dsum).Stride(dx).Stride(dy).Accumulate(dx).Accumulate(dy))
}
