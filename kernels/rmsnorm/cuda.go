package rmsnorm

import (
	_ "embed"

	"caper/cuda"
	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source         = engine.NewKernelText("kernels/rmsnorm/op.cu", text)
	forward        = source.Kernel("rmsnorm_forward")
	backward       = source.Kernel("rmsnorm_backward")
	weightGradient = source.Kernel("rmsnorm_weight_gradient")
)

// threads of a block: eight columns each, as far as a block goes.
func threads(cols int) int { return min((cols+255)/256*32, 1024) }

// mostBlocks is how many blocks sum up a weight's gradient: two waves of a large card, so
// that their parts stay small.
const mostBlocks = 264

func cudaForward(t *engine.Tape, o *op) {
	t.Launch(forward, engine.Blocks(o.x.Rows, threads(o.x.Cols)), t.Args().
		Tensor(o.x).Tensor(nil).Tensor(o.w).Tensor(nil).Tensor(o.y).Int(o.x.Cols).
		Stride(o.x).Stride(nil).Stride(nil).Stride(o.y).Float(o.eps).Float(o.offset))
}

// cudaBackward leaves the sums of the weight's gradient by block in workspace, and adds them
// up in their order.
func cudaBackward(t *engine.Tape, o *op, dx, dw, dy *engine.Tensor) {
	blocks, cols := min(o.x.Rows, mostBlocks), o.x.Cols
	launch := engine.Blocks(blocks, threads(cols))
	a := t.Args()
	a.Tensor(o.x).Tensor(o.w).Tensor(dy)
	if dx.Fresh() {
		a.Tensor(nil)
	} else {
		a.Tensor(dx)
	}
	var partial cuda.Ptr
	if dw != nil {
		partial = t.Workspace(4 * blocks * cols)
		launch.Shared = 4 * cuda.Bytes(cols)
	}
	a.Tensor(dx).Ptr(partial).Int(o.x.Rows).Int(cols).
		Stride(o.x).Stride(dy).Stride(dx).Stride(dx).Float(o.eps).Float(o.offset)
	t.Launch(backward, launch, a)
	if dw != nil {
		t.Launch(weightGradient, engine.Blocks((cols+255)/256, 256), t.Args().Ptr(partial).Tensor(dw).Int(blocks).Int(cols))
	}
}
