package l2norm

import (
	_ "embed"

	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source   = engine.NewKernelText("kernels/l2norm/op.cu", text)
	forward  = source.Kernel("l2norm_forward")
	backward = source.Kernel("l2norm_backward")
)

// width is how many lanes share a head.
func (o *op) width() int { return engine.Lanes((o.dim + 7) / 8) }

func (o *op) blocks() int { return (o.x.Rows*o.heads*o.width() + 255) / 256 }

func cudaForward(t *engine.Tape, o *op) {
	t.Launch(forward, engine.Blocks(o.blocks(), 256), t.Args().
		Tensor(o.x).Tensor(o.y).Int(o.x.Rows).Int(o.heads).Int(o.dim).Int(o.width()).Stride(o.x).Stride(o.y).Float(o.eps))
}

func cudaBackward(t *engine.Tape, o *op, dx, dy *engine.Tensor) {
	t.Launch(backward, engine.Blocks(o.blocks(), 256), t.Args().
		Tensor(o.x).Tensor(dy).Tensor(dx).Int(o.x.Rows).Int(o.heads).Int(o.dim).Int(o.width()).
		Stride(o.x).Stride(dy).Stride(dx).Float(o.eps).Accumulate(dx))
}
