package scorehead

import (
	_ "embed"

	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source         = engine.NewKernelText("kernels/scorehead/op.cu", text)
	forward        = source.Kernel("scorehead_forward")
	backwardHidden = source.Kernel("scorehead_backward_hidden")
	backwardWeight = source.Kernel("scorehead_backward_weight")
	backwardRows   = source.Kernel("scorehead_backward_weight_bf16")
)

func cudaForward(t *engine.Tape, o *op) {
	t.Launch(forward, engine.Blocks((len(o.rows)*o.w.Rows+7)/8, 256), t.Args().
		Tensor(o.hidden).Tensor(o.w).Ptr(t.Ints(o.rows)).Tensor(o.y).Int(len(o.rows)).Int(o.w.Rows).Int(o.w.Cols).
		Stride(o.hidden).Stride(o.w).Stride(o.y))
}

func cudaBackward(t *engine.Tape, o *op, dhidden, dw, dy *engine.Tensor) {
	rows, cols := t.Ints(o.rows), o.w.Cols
	if dhidden != nil {
		t.Launch(backwardHidden, engine.Blocks(len(o.rows), min((cols+255)/256*32, 256)), t.Args().
			Tensor(o.w).Tensor(dy).Ptr(rows).Tensor(dhidden).Int(len(o.rows)).Int(o.w.Rows).Int(cols).
			Stride(o.w).Stride(dy).Stride(dhidden))
	}
	if dw != nil {
		kernel := backwardWeight
		if !dw.IsFloat32() {
			kernel = backwardRows // w is rows of a language model's head
		}
		l := engine.Blocks((cols+255)/256, 256)
		l.Grid.Y = uint32(o.w.Rows)
		t.Launch(kernel, l, t.Args().Tensor(o.hidden).Tensor(dy).Ptr(rows).Tensor(dw).Int(len(o.rows)).Int(cols).
			Stride(o.hidden).Stride(dy).Stride(dw))
	}
}
