package gatednorm

import (
	_ "embed"

	"caper/cuda"
	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source         = engine.NewKernelText("kernels/gatednorm/op.cu", text)
	forward        = source.Kernel("gatednorm_forward")
	backward       = source.Kernel("gatednorm_backward")
	weightGradient = source.Kernel("gatednorm_weight_gradient")
)

// mostBlocks is how many blocks sum up the weight's gradient: what fits on a large card at
// once, so that their parts stay small.
const mostBlocks = 396

// width is how many lanes share a head.
func (o *op) width() int { return engine.Lanes((o.dim + 7) / 8) }

func (o *op) blocks() int { return (o.x.Rows*o.x.Cols/o.dim*o.width() + 255) / 256 }

func cudaForward(t *engine.Tape, o *op) {
	t.Launch(forward, engine.Blocks(o.blocks(), 256), t.Args().
		Tensor(o.x).Tensor(o.z).Tensor(o.w).Tensor(o.y).Int(o.x.Rows).Int(o.x.Cols/o.dim).Int(o.dim).Int(o.width()).
		Stride(o.x).Stride(o.z).Stride(o.y).Float(o.eps))
}

func cudaBackward(t *engine.Tape, o *op, dx, dz, dw, dy *engine.Tensor) {
	blocks := min(o.blocks(), mostBlocks)
	var partial cuda.Ptr
	if dw != nil {
		partial = t.Workspace(4 * blocks * o.dim)
	}
	t.Launch(backward, engine.Blocks(blocks, 256), t.Args().
		Tensor(o.x).Tensor(o.z).Tensor(o.w).Tensor(dy).Tensor(dx).Tensor(dz).Ptr(partial).
		Int(o.x.Rows).Int(o.x.Cols/o.dim).Int(o.dim).Int(o.width()).
		Stride(o.x).Stride(o.z).Stride(dy).Stride(dx).Stride(dz).Float(o.eps).Accumulate(dx).Accumulate(dz))
	if dw != nil {
		t.Launch(weightGradient, engine.Blocks((o.dim+31)/32, 256), t.Args().Ptr(partial).Tensor(dw).Int(blocks).Int(o.dim))
	}
}
