package swiglu

import (
	_ "embed"

	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source   = engine.NewKernelText("kernels/swiglu/op.cu", text)
	forward  = source.Kernel("swiglu_forward")
	backward = source.Kernel("swiglu_backward")
)

func cudaForward(t *engine.Tape, y, gate, up *engine.Tensor) {
	t.Launch(forward, engine.ColumnBlocks(y.Rows, y.Cols, 8, 256), t.Args().
		Tensor(gate).Tensor(up).Tensor(y).Int(y.Cols).Stride(gate).Stride(up).Stride(y))
}

func cudaBackward(t *engine.Tape, dgate, dup, dy, gate, up *engine.Tensor) {
	if dgate == nil && dup == nil {
		return
	}
	t.Launch(backward, engine.ColumnBlocks(dy.Rows, dy.Cols, 8, 256), t.Args().
		Tensor(gate).Tensor(up).Tensor(dy).Tensor(dgate).Tensor(dup).Int(dy.Cols).
		Stride(gate).Stride(up).Stride(dy).Stride(dgate).Stride(dup).Accumulate(dgate).Accumulate(dup))
}
